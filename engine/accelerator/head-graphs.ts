/** The end of the model as graphs for a device, over N tokens and an output head that may be in parts. */
import type { ModelConfig } from '../architectures/config.ts'
import { norm } from '../architectures/norm.ts'
import { gradient } from '../graph/gradient.ts'
import { input } from '../graph/input.ts'
import { buildModel } from '../graph/model.ts'
import { linear } from '../graph/operations/linear.ts'
import { concat, type Range } from '../graph/operations/slice.ts'
import { softCap } from '../graph/operations/soft-cap.ts'
import type { Value } from '../graph/value.ts'
import { tokenNumbers } from '../learner/head-graphs.ts'
import { LOSS_KINDS, type LossGraph, type LossKind } from '../losses/loss-kind.ts'
import { LoweringBuilder } from './lowering-builder.ts'

/** Runs of the vocabulary's rows, [from, to) each. */
export type Runs = readonly (readonly [number, number])[]

/** A `factored` teacher comes as the logits that were made of it. */
export type DeviceLoss = Exclude<LossKind, 'forward-kl/factored'>

/** Names of a head's parts. */
export function partName(name: string, part: number): string {
  return `${name}.${part}`
}

/** `x` [N, D] and `norm` [D] to `y` [N, D]. */
export function normGraph(config: ModelConfig): Uint8Array {
  const { hiddenSize: D } = config
  return build('final norm', { y: norm(config, input('x', ['N', D]), input('norm', [D])) })
}

/** `hidden` [N, D] (after the final norm) and `head.P` [V_P, D] to `logits` [N, V]. */
export function logitsGraph(config: ModelConfig, runs: Runs): Uint8Array {
  const hidden = input('hidden', ['N', config.hiddenSize])
  return build('logits', { logits: logitsOf(config, hidden, parts(config, 'head', runs), runs) })
}

/** Loss and its gradients, as in learner/head-graphs.ts; `head.P`, `sum.head.P` and `gradient.head.P` are the head's parts. */
export function lossGraph(config: ModelConfig, runs: Runs, kind: DeviceLoss, frozen: boolean): Uint8Array {
  const { hiddenSize: D } = config
  const x = input('x', ['N', D])
  const weight = input('norm', [D])
  const heads = parts(config, 'head', runs)
  const lossOf: LossGraph = LOSS_KINDS[kind]
  const loss = lossOf(logitsOf(config, norm(config, x, weight), heads, runs), config)
  const rate = input('rate', ['N', 1])
  if (frozen) {
    const [dx] = gradient(loss, rate, [x])
    return build(`loss ${kind}`, { loss, dx: dx! })
  }
  const sums = parts(config, 'sum.head', runs)
  const onto = new Map([
    [weight, input('sum.norm', [D])],
    ...heads.map((head, part) => [head, sums[part]!] as const),
  ])
  const [dx, dNorm, ...dHeads] = gradient(loss, rate, [x, weight, ...heads], { onto })
  const slopes = dHeads.map((slope, part) => [partName('gradient.head', part), slope])
  return build(`loss ${kind}`, { loss, dx: dx!, 'gradient.norm': dNorm!, ...Object.fromEntries(slopes) })
}

/** Per-token numbers of both sides, as in learner/head-graphs.ts, of heads in parts. */
export function numbersGraph(config: ModelConfig, runs: Runs): Uint8Array {
  const observed = input('observed', ['N', 1], 'int64')
  const logits = (side: string) => {
    const hidden = input(`${side}.hidden`, ['N', config.hiddenSize])
    return logitsOf(config, hidden, parts(config, `${side}.head`, runs), runs)
  }
  return build('token numbers', tokenNumbers(logits('student'), logits('teacher'), observed))
}

function parts({ hiddenSize: D }: ModelConfig, name: string, runs: Runs): Value[] {
  return runs.map(([from, to], part) => input(partName(name, part), [to - from, D]))
}

function logitsOf(config: ModelConfig, hidden: Value, heads: readonly Value[], runs: Runs): Value {
  const { vocabularySize: V, logitSoftCap } = config
  const ranges = runs.map(
    ([from, to]): Range => ({ from: bound(from), to: bound(to), of: bound(V), length: to - from }),
  )
  const logits = concat(
    heads.map(head => linear(hidden, head)),
    1,
    ranges,
    V,
  )
  return logitSoftCap === undefined ? logits : softCap(logits, logitSoftCap)
}

/** A constant bound of a range. */
function bound(at: number): Value {
  return { operation: { name: 'bound', emit: builder => builder.ints([at]) }, inputs: [], shape: [1] }
}

function build(name: string, outputs: Readonly<Record<string, Value>>): Uint8Array {
  return buildModel(name, outputs, {}, false, new LoweringBuilder(name))
}
