/**
 * Samples responses for many prompts on a device, as decoding/decoder.ts does on the CPU. The cache stays there; a
 * step's token ids and masks go there, and the logits come back: one read-back a step.
 *
 * A response does not depend on what is decoded beside it: every step has all rows, used or not, and prompts are read
 * one by one.
 */
import { Tensor } from 'onnxruntime-node'
import type { ModelConfig } from '../architectures/config.ts'
import { rotaryTables } from '../architectures/rotary-tables.ts'
import { LONGEST_PASS, MOST_BYTES_KEPT, MOST_SEQUENCES } from '../decoding/limits.ts'
import { PromptPasses } from '../decoding/prompt-passes.ts'
import { checkRequest, drawToken, type Request, type Row } from '../decoding/row.ts'
import { MASKED } from '../learner/positions.ts'
import type { Generation, SamplingOptions } from '../port.ts'
import type { Feeds, Fetched } from '../runtime/session.ts'
import { Sampler } from '../sampling/sampler.ts'
import { FINAL_NORM, headName } from '../weights/parameter-shapes.ts'
import { allCacheNames, decodeGraph, nextName } from './decode-graphs.ts'
import type { Device } from './device.ts'
import { DeviceCache } from './device-cache.ts'
import { DeviceEmbedding } from './device-embedding.ts'
import { DeviceSessions } from './device-sessions.ts'
import { partName } from './head-graphs.ts'
import { type ResidentWeights, rowRuns } from './resident.ts'
import { type Scope, scoped } from './scope.ts'
import { uploadAll } from './upload-all.ts'

export interface DeviceDecoderOptions {
  readonly tokensPerPass: number
  readonly sequencesPerPass: number
  readonly stopTokens: readonly number[]
}

export class DeviceDecoder {
  readonly #device: Device
  readonly #config: ModelConfig
  readonly #options: DeviceDecoderOptions
  readonly #sessions: DeviceSessions
  readonly #cache: DeviceCache
  readonly #embedding: DeviceEmbedding
  readonly #sampler: Sampler
  readonly #stop: ReadonlySet<number>
  readonly #rows: number
  /** Of the call at hand, before each pass. */
  #check = () => {}
  /** Resident. */
  #rotary: Record<string, Tensor> | undefined

  constructor(device: Device, config: ModelConfig, options: DeviceDecoderOptions) {
    this.#device = device
    this.#config = config
    this.#options = options
    this.#sessions = new DeviceSessions(device)
    this.#cache = new DeviceCache(device, config)
    this.#embedding = new DeviceEmbedding(device, config)
    this.#sampler = new Sampler(config.vocabularySize)
    this.#stop = new Set(options.stopTokens)
    this.#rows = Math.min(MOST_SEQUENCES, options.sequencesPerPass)
  }

  /** As Decoder.generate. */
  async generate(
    weights: ResidentWeights,
    requests: readonly Request[],
    sampling: SamplingOptions,
    check: () => void = () => {},
  ): Promise<Generation[]> {
    this.#check = check
    for (const request of requests) checkRequest(this.#config, request, sampling.maxNewTokens)
    if (requests.length === 0) return []
    const longest = Math.max(...requests.map(request => request.prompt.length))
    try {
      await this.#cache.reserve(this.#rows, longest + sampling.maxNewTokens)
      return await scoped(this.#device, scope => this.#decode(weights, requests, sampling, scope))
    } finally {
      this.#cache.free()
    }
  }

  /** Frees what it holds on the device. */
  free(): void {
    this.#cache.free()
    for (const table of Object.values(this.#rotary ?? {})) this.#device.free(table)
    this.#rotary = undefined
  }

  /** @param scope of what several prompts have in common */
  async #decode(
    weights: ResidentWeights,
    requests: readonly Request[],
    sampling: SamplingOptions,
    scope: Scope,
  ): Promise<Generation[]> {
    const { vocabularySize: V } = this.#config
    const fixed = await this.#fixed(weights)
    const results: Generation[] = new Array(requests.length)
    const passes = new PromptPasses<Fetched>(
      requests.map(({ prompt }) => prompt),
      {
        tokens: Math.min(this.#options.tokensPerPass, LONGEST_PASS),
        turnEnds: this.#stop,
        bytes: MOST_BYTES_KEPT,
      },
    )
    const slots: (Row | undefined)[] = new Array(this.#rows).fill(undefined)
    /** Draws the row's next token; true when it was the last. */
    const ends = (row: Row, logits: Float32Array): boolean => {
      const finished = drawToken(this.#sampler, this.#stop, row, logits, sampling)
      if (finished) results[row.index] = finished
      return finished !== undefined
    }
    let next = 0
    for (;;) {
      for (let slot = 0; slot < slots.length && next < requests.length; slot++) {
        while (!slots[slot] && next < requests.length) {
          const request = requests[next]!
          const row: Row = { index: next, request, sequence: [...request.prompt], logp: [] }
          next++
          if (!ends(row, await this.#read(weights, fixed, slot, row, passes, scope))) slots[slot] = row
        }
      }
      if (slots.every(row => row === undefined)) return results
      const logits = await this.#step(weights, fixed, slots)
      let at = 0
      for (const [slot, row] of slots.entries()) {
        if (!row) continue
        if (ends(row, logits.subarray(at, at + V))) slots[slot] = undefined
        at += V
      }
    }
  }

  /** Reads a row's prompt into the cache and gives the logits [V] of the first response token. */
  async #read(
    weights: ResidentWeights,
    fixed: Feeds,
    slot: number,
    { index, request: { prompt } }: Row,
    passes: PromptPasses<Fetched>,
    scope: Scope,
  ): Promise<Float32Array> {
    let logits: Float32Array | undefined
    const { layers, keyValueHeads, headDim, vocabularySize } = this.#config
    for (const pass of passes.of(index)) {
      const { start, end } = pass
      const count = end - start
      const bytes = 4 * (count * 2 * layers * keyValueHeads * headDim + vocabularySize)
      const fetched = await passes.read(pass, bytes, () =>
        this.#pass(weights, fixed, slot, prompt.slice(start, end), start, scope),
      )
      await this.#cache.append(fetched, slot, start, count)
      logits = fetched.logits!.data as Float32Array
      if (!passes.keeps(pass)) {
        for (const name of allCacheNames(this.#config)) scope.free(fetched[nextName(name)]!)
      }
    }
    return logits!
  }

  /** One pass over tokens of a prompt, of which the row's cache holds those before `start`. */
  async #pass(
    weights: ResidentWeights,
    fixed: Feeds,
    slot: number,
    tokens: Int32Array,
    start: number,
    scope: Scope,
  ): Promise<Fetched> {
    this.#check()
    const { slidingWindow, heads: H, keyValueHeads: K } = this.#config
    const S = tokens.length
    const M = this.#cache.length + S
    const mask = (window: number) => {
      const values = new Float32Array(S * M).fill(MASKED)
      for (let token = 0; token < S; token++) {
        const first = Math.max(0, start + token - window + 1)
        if (first < start) values.fill(0, token * M + first, token * M + start)
        const own = token * M + this.#cache.length
        values.fill(0, own + Math.max(0, first - start), own + token + 1)
      }
      return new Tensor('float32', values, [S, M])
    }
    const session = await this.#session('read')
    return scoped(this.#device, async pass => {
      const feeds = {
        ...fixed,
        ...this.#cache.feeds,
        x: await this.#embedding.embed(weights, [tokens], { rows: 1, length: S }, pass),
        positions: int64(
          Array.from(tokens, (_, token) => start + token),
          [1, S],
        ),
        mask: mask(Number.POSITIVE_INFINITY),
        ...(slidingWindow && { 'window.mask': mask(slidingWindow.tokens) }),
        row: this.#cache.row(slot),
        'heads.shape': int64([H, S, M], [3]),
        'groups.shape': int64([K, (H / K) * S, M], [3]),
      }
      return session.run(feeds, scope)
    })
  }

  /** Reads each row's newest token and gives the logits [N, V] of what follows the N rows that have a sequence. */
  async #step(
    weights: ResidentWeights,
    fixed: Feeds,
    slots: readonly (Row | undefined)[],
  ): Promise<Float32Array> {
    this.#check()
    const { slidingWindow, heads: H, keyValueHeads: K } = this.#config
    const [R, L] = [slots.length, this.#cache.length]
    const positions = Int32Array.from(slots, row => (row ? row.sequence.length - 1 : 0))
    const mask = (window: number) => {
      const values = new Float32Array(R * L).fill(MASKED)
      for (const [row, position] of positions.entries()) {
        values.fill(0, row * L + Math.max(0, position - window + 1), row * L + position + 1)
      }
      return new Tensor('float32', values, [R, 1, L])
    }
    const wanted = Int32Array.from(slots.keys()).filter(slot => slots[slot] !== undefined)
    const session = await this.#session('step')
    return scoped(this.#device, async scope => {
      const tokens = slots.map(row => Int32Array.of(row?.sequence.at(-1) ?? 0))
      const { logits } = await session.run(
        {
          ...fixed,
          ...this.#cache.feeds,
          x: await this.#embedding.embed(weights, tokens, { rows: R, length: 1 }, scope),
          positions: int64([...positions], [R, 1]),
          mask: mask(Number.POSITIVE_INFINITY),
          ...(slidingWindow && { 'window.mask': mask(slidingWindow.tokens) }),
          places: this.#cache.places(positions),
          wanted: new Tensor('int32', wanted, [wanted.length]),
          'heads.shape': int64([R, H, L], [3]),
          'groups.shape': int64([R * K, H / K, L], [3]),
        },
        scope,
        this.#cache.over,
      )
      return logits!.data as Float32Array
    })
  }

  #session(kind: 'read' | 'step') {
    const { vocabularySize, hiddenSize } = this.#config
    const runs = rowRuns(vocabularySize, 4 * hiddenSize, this.#device.bindingBytes)
    const resident = kind === 'read' ? allCacheNames(this.#config).map(nextName) : []
    return this.#sessions.get(kind, () => decodeGraph(this.#config, kind, runs), resident)
  }

  #uploadRotary(): Promise<Record<string, Tensor>> {
    const { cos, sin } = rotaryTables(this.#config)
    return uploadAll(this.#device, { cosines: cos, sines: sin })
  }

  /** What every pass of a call is fed. */
  async #fixed(weights: ResidentWeights): Promise<Feeds> {
    this.#rotary ??= await this.#uploadRotary()
    const head = weights.get(headName(this.#config))!
    const feeds: Record<string, Tensor> = { ...this.#rotary }
    for (const [name, resident] of weights) {
      if (name.startsWith('model.layers.') || name === FINAL_NORM) feeds[name] = resident.whole
    }
    for (const [index, part] of head.parts.entries()) feeds[partName('head', index)] = part
    return feeds
  }
}

function int64(values: readonly number[], dims: readonly number[]): Tensor {
  return new Tensor('int64', BigInt64Array.from(values, BigInt), dims)
}
