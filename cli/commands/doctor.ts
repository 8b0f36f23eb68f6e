import { existsSync } from 'node:fs'
import { findDevices } from '../../engine/devices/find-devices.ts'
import { machineMemory } from '../../engine/memory/free-memory.ts'
import { largestModels } from '../../engine/memory/largest-model.ts'
import type { Check } from '../doctor/check.ts'
import type { ModelMemory } from '../doctor/configuration.ts'
import { devicesText } from '../doctor/devices.ts'
import { machineChecks } from '../doctor/machine.ts'
import { ASSUMPTIONS, fitText, largestText, roomsOf } from '../doctor/memory.ts'
import type { CommonOptions, Session } from '../session.ts'

export async function doctor(session: Session, options: CommonOptions): Promise<void> {
  const devices = await findDevices()
  const checks: Check[] = await machineChecks(devices)
  const rooms = roomsOf(devices, machineMemory().free)
  const wanted = options.config !== undefined || (options.set?.length ?? 0) > 0 || existsSync('grasp.yaml')
  let memory: ModelMemory | undefined
  if (wanted) {
    const { configurationReport } = await import('../doctor/configuration.ts')
    const freeOf = (device: string) => rooms.find(room => room.device === device)?.free
    const report = await configurationReport(() => session.config(), devices, freeOf)
    checks.push(...report.checks)
    memory = report.memory
  }
  const failed = checks.filter(({ ok }) => !ok).length
  const largest = memory
    ? []
    : rooms.map(room => ({ ...room, models: largestModels(room.free, room.device === 'cpu') }))
  const paragraphs = [
    checksText(checks),
    devicesText(devices),
    ...(memory ? [fitText(memory)] : []),
    ...largest.map(({ models, ...room }) => largestText(room, models)),
    ...(largest.length > 0 ? [ASSUMPTIONS] : []),
    ...(wanted ? [] : ['No configuration checked: name one with --config FILE.']),
    ...(failed === 0 ? [] : [`${failed} of ${checks.length} checks failed`]),
  ]
  session.result(
    { ok: failed === 0, checks, devices, ...(memory ? { memory } : { largest }) },
    `${paragraphs.join('\n\n')}\n`,
  )
  if (failed > 0) session.fail()
}

function checksText(checks: readonly Check[]): string {
  const width = Math.max(...checks.map(({ name }) => name.length))
  return checks
    .map(({ name, ok, detail }) => `${ok ? 'ok  ' : 'FAIL'}  ${name.padEnd(width)}  ${detail}`)
    .join('\n')
}
