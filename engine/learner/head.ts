/**
 * Final norm, output head and losses over rows of tokens, a chunk at a time: memory grows with the chunk and
 * the vocabulary, not with the number of rows.
 */
import { Tensor } from 'onnxruntime-node'
import type { ModelConfig } from '../architectures/config.ts'
import type { LossKind } from '../losses/loss-kind.ts'
import { Session, type SessionOptions } from '../runtime/session.ts'
import { leastRows } from '../runtime/thread-invariance.ts'
import { FINAL_NORM, headName } from '../weights/parameter-shapes.ts'
import type { Weights } from '../weights/weights.ts'
import { CHUNK_ELEMENTS, chunksOf } from './chunks.ts'
import type { GradientSums } from './gradient-sums.ts'
import { logitsGraph, lossGraph, normGraph, numbersGraph } from './head-graphs.ts'
import { padTarget, type Target, targetFeeds } from './target.ts'

/** Hidden states [N, D] after the final norm, with the matrix [V, D] that makes logits of them. */
export interface HeadInput {
  readonly hidden: Float32Array
  readonly head: Tensor
}

/** One entry a token, nats. */
export interface TokenNumbers {
  /** log-sum-exp of the logits. */
  readonly studentLse: Float32Array
  readonly teacherLse: Float32Array
  /** log-probability of the observed token. */
  readonly studentLogp: Float32Array
  readonly teacherLogp: Float32Array
  /** KL(teacher ‖ student) over the whole vocabulary. */
  readonly kl: Float32Array
}

export function zeroNumbers(tokens: number): TokenNumbers {
  return {
    studentLse: new Float32Array(tokens),
    teacherLse: new Float32Array(tokens),
    studentLogp: new Float32Array(tokens),
    teacherLogp: new Float32Array(tokens),
    kl: new Float32Array(tokens),
  }
}

export class Head {
  readonly #config: ModelConfig
  readonly #options: SessionOptions
  readonly #sessions = new Map<string, Promise<Session>>()
  readonly #chunk: number

  /** @param chunk most tokens in one pass */
  constructor(
    config: ModelConfig,
    options: SessionOptions,
    chunk: number = Math.max(1, Math.floor(CHUNK_ELEMENTS / config.vocabularySize)),
  ) {
    this.#config = config
    this.#options = options
    this.#chunk = chunk
  }

  /** The final norm of rows [N, D]. */
  async norm(weights: Weights, rows: Float32Array): Promise<Float32Array> {
    if (rows.length === 0) return rows
    const session = await this.#session('norm', normGraph)
    const { y } = await session.run({ x: this.#rows(rows), norm: weights.get(FINAL_NORM)! })
    return y!.data as Float32Array
  }

  /** Logits [N, V]. */
  async logits({ hidden, head }: HeadInput): Promise<Float32Array> {
    const { vocabularySize: V, hiddenSize: D } = this.#config
    const all = new Float32Array((hidden.length / D) * V)
    const session = await this.#session('logits', logitsGraph)
    for (const [from, to] of chunksOf(hidden.length / D, this.#chunk)) {
      const logits = new Tensor('float32', all.subarray(from * V, to * V), [to - from, V])
      await session.run({ hidden: this.#rows(hidden.subarray(from * D, to * D)), head }, { logits })
    }
    return all
  }

  async numbers(student: HeadInput, teacher: HeadInput, observed: Int32Array): Promise<TokenNumbers> {
    const { hiddenSize: D } = this.#config
    const tokens = observed.length
    const numbers = zeroNumbers(tokens)
    const session = await this.#session('numbers', numbersGraph)
    for (const [from, to] of chunksOf(tokens, this.#chunk)) {
      const part = (values: Float32Array) => new Tensor('float32', values.subarray(from, to), [to - from, 1])
      await session.run(
        {
          'student.hidden': this.#rows(student.hidden.subarray(from * D, to * D)),
          'student.head': student.head,
          'teacher.hidden': this.#rows(teacher.hidden.subarray(from * D, to * D)),
          'teacher.head': teacher.head,
          observed: new Tensor('int64', BigInt64Array.from(observed.subarray(from, to), BigInt), [
            to - from,
            1,
          ]),
        },
        {
          'student.lse': part(numbers.studentLse),
          'teacher.lse': part(numbers.teacherLse),
          'student.logp': part(numbers.studentLogp),
          'teacher.logp': part(numbers.teacherLogp),
          kl: part(numbers.kl),
        },
      )
    }
    return numbers
  }

  /**
   * @param rows [N, D] before the final norm
   * @param rates [N]: the weight of each token's loss in the sum that is differentiated
   * @param sums where the gradients of final norm and head are added, if these are trained
   * @returns losses [N], unweighted, and the gradient at `rows`
   */
  async loss(
    kind: LossKind,
    weights: Weights,
    teacherHead: Tensor,
    rows: Float32Array,
    rates: Float32Array,
    target: Target,
    sums: GradientSums,
  ): Promise<{ losses: Float32Array; gradient: Float32Array }> {
    const { hiddenSize: D } = this.#config
    const tokens = rates.length
    const least = leastRows([D])
    if (tokens < least) {
      // Tokens of rate 0 add exactly nothing.
      const [someRows, someRates] = [new Float32Array(least * D), new Float32Array(least)]
      someRows.set(rows)
      someRates.set(rates)
      const padded = padTarget(target, least)
      const result = await this.loss(kind, weights, teacherHead, someRows, someRates, padded, sums)
      return { losses: result.losses.slice(0, tokens), gradient: result.gradient.slice(0, tokens * D) }
    }
    const losses = new Float32Array(rates.length)
    const gradient = new Float32Array(rows.length)
    const [norm, head] = [FINAL_NORM, headName(this.#config)]
    const chunks = [...chunksOf(rates.length, this.#chunk)]
    // Further chunks would be added in another session, with memory of its own.
    const first = chunks.length === 1 && sums.isEmpty(norm) && sums.isEmpty(head)
    const gradients = !sums.has(head) ? 'none' : first ? 'first' : 'added'
    const session = await this.#session(`loss ${kind}, gradients: ${gradients}`, config =>
      lossGraph(config, kind, gradients),
    )
    const sumOf = (name: string) => (first ? sums.begin(name) : sums.of(name))
    for (const [from, to] of chunks) {
      const feeds: Record<string, Tensor> = {
        x: this.#rows(rows.subarray(from * D, to * D)),
        norm: weights.get(norm)!,
        head: weights.get(head)!,
        rate: new Tensor('float32', rates.subarray(from, to), [to - from, 1]),
        ...targetFeeds(target, from, to),
        ...(gradients === 'added' && { 'sum.norm': sums.of(norm), 'sum.head': sums.of(head) }),
      }
      if (kind === 'forward-kl/factored') feeds['teacher.head'] = teacherHead
      await session.run(feeds, {
        loss: new Tensor('float32', losses.subarray(from, to), [to - from, 1]),
        dx: this.#rows(gradient.subarray(from * D, to * D)),
        ...(gradients !== 'none' && { 'gradient.norm': sumOf(norm), 'gradient.head': sumOf(head) }),
      })
    }
    return { losses, gradient }
  }

  async release(): Promise<void> {
    for (const session of this.#sessions.values()) await (await session).release()
  }

  #rows(data: Float32Array): Tensor {
    const width = this.#config.hiddenSize
    return new Tensor('float32', data, [data.length / width, width])
  }

  #session(name: string, graph: (config: ModelConfig) => Uint8Array): Promise<Session> {
    let session = this.#sessions.get(name)
    if (!session) {
      session = Session.create(name, graph(this.#config), this.#options)
      this.#sessions.set(name, session)
    }
    return session
  }
}
