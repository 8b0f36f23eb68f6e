/** What fits into memory, as text: of the model at hand, or of any. */
import type { DeviceReport } from '../../engine/devices/device.ts'
import { size } from '../../engine/devices/size.ts'
import type { Fit } from '../../engine/memory/fit.ts'
import { ASSUMED, type LargestModel } from '../../engine/memory/largest-model.ts'
import { table } from '../table.ts'
import type { ModelMemory } from './configuration.ts'

/** A memory that models are to fit into. */
export interface Room {
  /** The device's name. */
  readonly device: string
  /** Bytes. */
  readonly free: number
}

/** The machine's memory for the processor, and that of each device which works and whose memory is known. */
export function roomsOf(devices: readonly DeviceReport[], free: number): Room[] {
  return devices.flatMap(({ provider, state, memory, software }): Room[] => {
    if (state !== 'works') return []
    if (provider === 'cpu') return [{ device: provider, free }]
    // A software device takes its memory from the machine.
    return memory ? [{ device: provider, free: software ? Math.min(free, memory.free) : memory.free }] : []
  })
}

const millions = (count: number) => (count >= 1e9 ? `${count / 1e9} billion` : `${count / 1e6} million`)

/** A unit for columns in which so many bytes are no `0.00`. */
function unitOf(bytes: number) {
  const [unit, divisor] = bytes < 2 ** 30 ? ['MiB', 2 ** 20] : ['GiB', 2 ** 30]
  return { unit, amount: (of: number) => (of / divisor).toFixed(2) }
}

export function largestText({ device, free }: Room, largest: readonly LargestModel[]): string {
  const rows = largest.map(({ use, parameters, example }) => [
    `  ${use}`,
    parameters === 0 ? 'none fits' : `${millions(parameters)} parameters`,
    example ? `such as ${example.name}, which takes ${size(example.bytes)}` : '',
  ])
  const text = table([['', '', ''], ...rows])
    .replace(/^\s*\n/, '')
    .trimEnd()
  return `Largest models that fit on ${device}, in ${size(free)}\n${text}`
}

/** What the answers of `largestText` are for. */
export const ASSUMPTIONS =
  `  for sequences (prompt and response) of ${ASSUMED.tokens.toLocaleString('en')} tokens, ` +
  `${ASSUMED.sequences} of them decoded together, LoRA of rank ${ASSUMED.loraRank}.\n` +
  '  Estimates, of which processes really took 75 to 101 %; with --config FILE of one model and its settings.'

export function fitText({ device, free, fit, savings, context }: ModelMemory): string {
  const { length, use, longest } = fit
  const { training, decoding } = use
  const { unit, amount } = unitOf(training.bytes)
  const rows = training.parts.map(({ what, bytes }) => {
    const decoded = decodingPart(what, decoding)
    return [`  ${what}`, amount(bytes), decoded === undefined ? '–' : amount(decoded)]
  })
  const tokens = (count: number) => count.toLocaleString('en')
  const known = free === undefined ? '–' : amount(free)
  const lines = [
    `Memory on ${device}, for sequences (prompt and response) of ${tokens(length)} tokens`,
    table([
      [`  ${unit}`, 'training', 'decoding'],
      ...rows,
      ['  in all', amount(training.bytes), amount(decoding.bytes)],
      ['  free', known, known],
    ]).trimEnd(),
  ]
  if (free === undefined) return [...lines, `  how much memory ${device} has is not known`].join('\n')
  lines.push(
    ...(['training', 'decoding'] as const).map(work => {
      const most = longest[work]
      if (most === 0) return `  ${work} does not fit`
      const all = most >= context ? "all of the model's context" : `the context is ${tokens(context)}`
      return `  ${work} fits, with sequences of up to ${tokens(most)} tokens (${all})`
    }),
  )
  if (longest.training < context && savings.length > 0) {
    lines.push('  Less memory for training is needed with')
    lines.push(
      table([['', ''], ...savings.map(({ setting, bytes }) => [`    ${setting}`, `saves ${size(bytes)}`])])
        .replace(/^\s*\n/, '')
        .trimEnd(),
    )
  }
  return lines.join('\n')
}

/** Bytes, while decoding, of what takes memory while training; undefined where it is not there. */
function decodingPart(what: string, { parts }: Fit['use']['decoding']): number | undefined {
  return parts.find(
    part => part.what === what || (part.what === 'weights' && what === "the teacher's weights"),
  )?.bytes
}
