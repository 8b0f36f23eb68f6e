/** What there is to compute on, as text. */

import type { DeviceReport } from '../../engine/devices/device.ts'
import { size } from '../../engine/devices/size.ts'
import { table } from '../table.ts'

const STATES = { works: 'works', absent: 'none', fails: 'fails' } as const

export function devicesText(devices: readonly DeviceReport[]): string {
  const rows = devices.map(({ provider, state, name, detail }) => [
    `  ${provider}`,
    STATES[state],
    [name, detail].filter(text => text !== undefined && text !== '').join(': '),
  ])
  return ['Devices', ...(rows.length > 0 ? [plainTable(rows)] : []), ...devices.flatMap(factsText)].join('\n')
}

function factsText({ provider, state, name, facts, memory }: DeviceReport): string[] {
  const rows = facts.map(({ what, value, source }) => [`  ${what}`, value, source])
  if (memory) {
    const free = memory.free < memory.total ? `, ${size(memory.free)} free` : ''
    rows.push(['  memory', `${size(memory.total)}${free}`, memory.source])
  } else if (state === 'works') {
    rows.push(['  memory', 'not known', `neither vulkaninfo nor the GPU's driver states it`])
  }
  // Of the processor there is no more to say than that it works.
  return rows.length === 0 || provider === 'cpu'
    ? []
    : ['', name === undefined ? provider : `${provider}: ${name}`, plainTable(rows)]
}

/** Without a line of headings. */
function plainTable(rows: readonly (readonly string[])[]): string {
  return table([rows[0]!.map(() => ''), ...rows])
    .replace(/^\s*\n/, '')
    .trimEnd()
}
