/** Final norm, output head and losses on a device, a chunk of tokens at a time: what learner/head.ts does on the CPU. */
import { Tensor } from 'onnxruntime-node'
import type { ModelConfig } from '../architectures/config.ts'
import { CHUNK_ELEMENTS, chunksOf } from '../learner/chunks.ts'
import { type TokenNumbers, zeroNumbers } from '../learner/head.ts'
import { type Target, targetFeeds } from '../learner/target.ts'
import type { LossKind } from '../losses/loss-kind.ts'
import type { Fetched } from '../runtime/session.ts'
import { FINAL_NORM, headName } from '../weights/parameter-shapes.ts'
import type { Device, DeviceSession } from './device.ts'
import { DeviceSessions } from './device-sessions.ts'
import type { GradientSums } from './gradient-sums.ts'
import { gatherRowsGraph, scatterRowsGraph } from './graphs.ts'
import {
  type DeviceLoss,
  logitsGraph,
  lossGraph,
  normGraph,
  numbersGraph,
  partName,
  type Runs,
} from './head-graphs.ts'
import type { Resident, ResidentWeights } from './resident.ts'
import { rowRuns } from './resident.ts'
import { type Scope, scoped } from './scope.ts'

/** Hidden states [N, D] after the final norm, with the matrix [V, D] that makes logits of them. */
export interface DeviceHeadInput {
  readonly hidden: Float32Array
  readonly head: Resident
}

export class DeviceHead {
  readonly #device: Device
  readonly #config: ModelConfig
  readonly #sessions: DeviceSessions
  readonly #chunk: number
  readonly #runs: Runs

  /** @param chunk most tokens in one pass */
  constructor(device: Device, config: ModelConfig, chunk?: number) {
    this.#device = device
    this.#config = config
    this.#sessions = new DeviceSessions(device)
    const elements = Math.min(CHUNK_ELEMENTS, device.bindingBytes / 4)
    this.#chunk = chunk ?? Math.max(1, Math.floor(elements / config.vocabularySize))
    this.#runs = rowRuns(config.vocabularySize, 4 * config.hiddenSize, device.bindingBytes)
  }

  /** Rows of y [B, T, D] by their numbers among its B · T, after the final norm: [N, D] on the CPU. */
  async norm(weights: ResidentWeights, y: Tensor, rows: Int32Array): Promise<Float32Array> {
    if (rows.length === 0) return new Float32Array(0)
    return scoped(this.#device, async scope => {
      const x = await this.#gather(y, rows, scope)
      const session = await this.#sessions.get('final norm', () => normGraph(this.#config), [])
      const { y: normed } = await session.run({ x, norm: weights.get(FINAL_NORM)!.whole }, scope)
      return normed!.data as Float32Array
    })
  }

  /** Logits [N, V]. */
  async logits({ hidden, head }: DeviceHeadInput): Promise<Float32Array> {
    const { vocabularySize: V, hiddenSize: D } = this.#config
    const all = new Float32Array((hidden.length / D) * V)
    const session = await this.#sessions.get('logits', () => logitsGraph(this.#config, this.#runs), [])
    for (const [from, to] of chunksOf(hidden.length / D, this.#chunk)) {
      const { logits } = await scoped(this.#device, scope =>
        session.run({ hidden: this.#rows(hidden, from, to), ...parts('head', head) }, scope),
      )
      all.set(logits!.data as Float32Array, from * V)
    }
    return all
  }

  async numbers(
    student: DeviceHeadInput,
    teacher: DeviceHeadInput,
    observed: Int32Array,
  ): Promise<TokenNumbers> {
    const tokens = observed.length
    const numbers = zeroNumbers(tokens)
    const session = await this.#sessions.get(
      'token numbers',
      () => numbersGraph(this.#config, this.#runs),
      [],
    )
    for (const [from, to] of chunksOf(tokens, this.#chunk)) {
      const ids = BigInt64Array.from(observed.subarray(from, to), BigInt)
      const feeds = {
        'student.hidden': this.#rows(student.hidden, from, to),
        'teacher.hidden': this.#rows(teacher.hidden, from, to),
        ...parts('student.head', student.head),
        ...parts('teacher.head', teacher.head),
        observed: new Tensor('int64', ids, [to - from, 1]),
      }
      const fetched = await scoped(this.#device, scope => session.run(feeds, scope))
      const take = (values: Float32Array, name: string) =>
        values.set(fetched[name]!.data as Float32Array, from)
      take(numbers.studentLse, 'student.lse')
      take(numbers.teacherLse, 'teacher.lse')
      take(numbers.studentLogp, 'student.logp')
      take(numbers.teacherLogp, 'teacher.logp')
      take(numbers.kl, 'kl')
    }
    return numbers
  }

  /**
   * @param y [B, T, D] before the final norm; @param rows of it that predict a token, by their numbers among B · T
   * @param rates [N]: the weight of each token's loss in the sum that is differentiated
   * @param sums where the gradients of final norm and head are added, if these are trained
   * @returns losses [N], unweighted, and the gradient at y, of the scope
   */
  async loss(
    kind: LossKind,
    weights: ResidentWeights,
    teacherHead: Resident,
    y: Tensor,
    rows: Int32Array,
    rates: Float32Array,
    target: Target,
    sums: GradientSums,
    scope: Scope,
  ): Promise<{ losses: Float32Array; dy: Tensor }> {
    const losses = new Float32Array(rates.length)
    const name = headName(this.#config)
    const session = await this.#lossSession(kind, !sums.has(name))
    let dy: Tensor | undefined
    for (const [from, to] of chunksOf(rates.length, this.#chunk)) {
      await scoped(this.#device, async chunk => {
        const feeds = {
          x: await this.#gather(y, rows.subarray(from, to), chunk),
          norm: weights.get(FINAL_NORM)!.whole,
          ...parts('head', weights.get(name)!),
          rate: new Tensor('float32', rates.subarray(from, to), [to - from, 1]),
          ...(await this.#target(kind, teacherHead, target, from, to, chunk)),
          ...(sums.has(name) && {
            'sum.norm': sums.whole(FINAL_NORM),
            ...Object.fromEntries(sums.parts(name).map((sum, part) => [partName('sum.head', part), sum])),
          }),
        }
        const fetched = await session.run(feeds, chunk)
        losses.set(fetched.loss!.data as Float32Array, from)
        if (sums.has(name)) this.#add(sums, name, fetched, chunk)
        const placed = await this.#scatter(fetched.dx!, rows.subarray(from, to), y, dy, chunk)
        if (dy) scope.free(dy)
        dy = scope.own(chunk.keep(placed))
      })
    }
    return { losses, dy: dy! }
  }

  #add(sums: GradientSums, head: string, fetched: Fetched, scope: Scope): void {
    sums.replace(FINAL_NORM, fetched['gradient.norm']!, scope)
    for (const part of this.#runs.keys()) {
      sums.replace(head, fetched[partName('gradient.head', part)]!, scope, part)
    }
  }

  #lossSession(kind: LossKind, frozen: boolean): Promise<DeviceSession> {
    const of: DeviceLoss = kind === 'forward-kl/factored' ? 'forward-kl/dense' : kind
    const slopes = frozen
      ? []
      : ['gradient.norm', ...this.#runs.map((_, part) => partName('gradient.head', part))]
    return this.#sessions.get(
      `${frozen ? 'frozen ' : ''}loss ${of}`,
      () => lossGraph(this.#config, this.#runs, of, frozen),
      ['dx', ...slopes],
    )
  }

  /** A chunk of the target; hidden states of a teacher become its logits. */
  async #target(
    kind: LossKind,
    teacherHead: Resident,
    target: Target,
    from: number,
    to: number,
    scope: Scope,
  ): Promise<Record<string, Tensor>> {
    const feeds = targetFeeds(target, from, to)
    if (kind !== 'forward-kl/factored') return feeds
    const session = await this.#sessions.get('teacher logits', () => logitsGraph(this.#config, this.#runs))
    const { logits } = await session.run(
      { hidden: feeds['teacher.hidden']!, ...parts('head', teacherHead) },
      scope,
    )
    return { 'teacher.logits': logits! }
  }

  async #gather(x: Tensor, rows: Int32Array, scope: Scope): Promise<Tensor> {
    const session = await this.#sessions.get('gather rows', () => gatherRowsGraph(this.#config.hiddenSize))
    const { y } = await session.run({ x, rows: new Tensor('int32', rows, [rows.length]) }, scope)
    return y!
  }

  /** A batch like `like` with the rows at their places, onto `sum`. */
  async #scatter(
    rows: Tensor,
    at: Int32Array,
    like: Tensor,
    sum: Tensor | undefined,
    scope: Scope,
  ): Promise<Tensor> {
    const [B, T] = like.dims as [number, number]
    const places = new Int32Array(B * T)
    at.forEach((place, row) => {
      places[place] = row + 1
    })
    const onto = sum !== undefined
    const { hiddenSize } = this.#config
    const session = await this.#sessions.get(`scatter rows${onto ? ' onto' : ''}`, () =>
      scatterRowsGraph(hiddenSize, onto),
    )
    const feeds = { rows, places: new Tensor('int32', places, [B, T]), ...(sum && { sum }) }
    const { y } = await session.run(feeds, scope)
    return y!
  }

  #rows(hidden: Float32Array, from: number, to: number): Tensor {
    const { hiddenSize: D } = this.#config
    return new Tensor('float32', hidden.subarray(from * D, to * D), [to - from, D])
  }
}

function parts(name: string, matrix: Resident): Record<string, Tensor> {
  return Object.fromEntries(matrix.parts.map((part, index) => [partName(name, index), part]))
}
