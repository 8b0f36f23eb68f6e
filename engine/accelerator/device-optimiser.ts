/** AdamW on a device: moments are resident, and every step makes new ones. */
import { Tensor } from 'onnxruntime-node'
import type { OptimiserState } from '../optimiser/adamw.ts'
import type { AdamwFactors } from '../optimiser/adamw-kernel.ts'
import type { UpdateOptions } from '../port.ts'
import { adamwGraph, FACTORS, factorValues } from './adamw-graph.ts'
import type { Device } from './device.ts'
import { DeviceSessions } from './device-sessions.ts'
import { type GradientSums, zerosLike } from './gradient-sums.ts'
import { squaresGraph } from './graphs.ts'
import { downloadParameter, freeWeights, keepAll, Resident, type ResidentWeights } from './resident.ts'
import { type Scope, scoped } from './scope.ts'

interface Moments {
  readonly m: Resident
  readonly v: Resident
}

/** What a step does with the weights that it replaces. */
export interface StepOptions {
  readonly scale: number
  readonly options: Omit<UpdateOptions, 'responses' | 'clip'>
  /** Told each new weight, in the order of their names. */
  readonly made: (name: string, weight: Resident) => Promise<void>
  /** Whether nobody needs the weight that is replaced: it is freed. */
  readonly frees: (name: string) => boolean
}

export class DeviceOptimiser {
  readonly #device: Device
  readonly #sessions: DeviceSessions
  readonly #moments = new Map<string, Moments>()
  #steps = 0

  constructor(device: Device) {
    this.#device = device
    this.#sessions = new DeviceSessions(device)
  }

  /** L2 norm over all sums, in the order of their names: weights from a checkpoint may come in another. */
  async norm(sums: GradientSums): Promise<number> {
    return scoped(this.#device, async scope => {
      let total: Tensor = new Tensor('float32', new Float32Array(1), [1])
      for (const name of [...sums.names()].sort()) {
        for (const part of sums.parts(name)) {
          const rank = part.dims.length
          const session = await this.#sessions.get(`squares ${rank}`, () => squaresGraph(rank))
          const { y } = await session.run({ x: part, sum: total }, scope)
          total = y!
        }
      }
      const sum = (await this.#device.download(total)).data as Float32Array
      return Math.sqrt(sum[0]!)
    })
  }

  /** One step. The sums are used up: each is freed with its weight. @returns new weights */
  async step(
    weights: ResidentWeights,
    sums: GradientSums,
    { scale, options, made, frees }: StepOptions,
  ): Promise<Map<string, Resident>> {
    this.#steps++
    const { learningRate, betas, epsilon, weightDecay } = options
    const [beta1, beta2] = betas
    const rate = learningRate / (1 - beta1 ** this.#steps)
    const correction = 1 / Math.sqrt(1 - beta2 ** this.#steps)
    const factors = { scale, beta1, beta2, rate, correction, epsilon }
    return scoped(this.#device, async scope => {
      const decayed = await this.#upload({ ...factors, shrink: 1 - learningRate * weightDecay }, scope)
      const exempt = await this.#upload({ ...factors, shrink: 1 }, scope)
      const updated = new Map<string, Resident>()
      for (const name of [...weights.keys()].sort()) {
        const weight = weights.get(name)!
        const next = await this.#one(name, weight, sums, weight.dims.length > 1 ? decayed : exempt)
        for (const part of next.parts) scope.own(part)
        updated.set(name, next)
        await made(name, next)
        if (frees(name)) weight.free()
      }
      return keepAll(scope, updated)
    })
  }

  /** A copy on the CPU; undefined before the first step. */
  async save(): Promise<OptimiserState | undefined> {
    if (this.#steps === 0 && this.#moments.size === 0) return undefined
    const state: OptimiserState = { steps: this.#steps, m: new Map(), v: new Map() }
    for (const [name, { m, v }] of this.#moments) {
      state.m.set(name, await downloadParameter(this.#device, m))
      state.v.set(name, await downloadParameter(this.#device, v))
    }
    return state
  }

  /** @param upload as the parameters of those names are held */
  async restore(
    state: OptimiserState | undefined,
    upload: (moments: ReadonlyMap<string, Tensor>) => Promise<ResidentWeights>,
  ): Promise<void> {
    this.free()
    this.#steps = state?.steps ?? 0
    if (!state) return
    const m = await upload(state.m)
    try {
      const v = await upload(state.v)
      for (const [name, mean] of m) this.#moments.set(name, { m: mean, v: v.get(name)! })
    } catch (error) {
      freeWeights(m)
      throw error
    }
  }

  free(): void {
    for (const { m, v } of this.#moments.values()) {
      m.free()
      v.free()
    }
    this.#moments.clear()
  }

  async #one(
    name: string,
    weight: Resident,
    sums: GradientSums,
    factors: Readonly<Record<string, Tensor>>,
  ): Promise<Resident> {
    const { m, v } = await this.#momentsOf(name, weight)
    const rank = weight.dims.length
    const session = await this.#sessions.get(`adamw ${rank}`, () => adamwGraph(rank))
    const next: { w: Tensor[]; m: Tensor[]; v: Tensor[] } = { w: [], m: [], v: [] }
    await scoped(this.#device, async scope => {
      for (const [part, g] of sums.parts(name).entries()) {
        const own = { w: weight.parts[part]!, g, m: m.parts[part]!, v: v.parts[part]! }
        const made = await session.run({ ...own, ...factors }, scope)
        for (const of of ['w', 'm', 'v'] as const) next[of].push(made[`${of}'`]!)
      }
      for (const tensor of Object.values(next).flat()) scope.keep(tensor)
    })
    sums.drop(name)
    m.free()
    v.free()
    const resident = (parts: readonly Tensor[]) => new Resident(this.#device, weight.dims, parts)
    this.#moments.set(name, { m: resident(next.m), v: resident(next.v) })
    return resident(next.w)
  }

  async #momentsOf(name: string, weight: Resident): Promise<Moments> {
    const known = this.#moments.get(name)
    if (known) return known
    const moments = await scoped(this.#device, async scope => {
      const zeros = async () => {
        const parts: Tensor[] = []
        for (const part of weight.parts) {
          parts.push(scope.own(await zerosLike(this.#device, this.#sessions, part.dims)))
        }
        return new Resident(this.#device, weight.dims, parts)
      }
      const [m, v] = [await zeros(), await zeros()]
      for (const part of [...m.parts, ...v.parts]) scope.keep(part)
      return { m, v }
    })
    this.#moments.set(name, moments)
    return moments
  }

  /** Uploaded once a step, since every parameter takes them. */
  async #upload(factors: AdamwFactors, scope: Scope): Promise<Record<string, Tensor>> {
    const values = factorValues(factors)
    const resident: Record<string, Tensor> = {}
    for (const name of FACTORS) {
      const tensor = new Tensor('float32', Float32Array.of(values[name]), [1])
      resident[name] = scope.own(await this.#device.upload(tensor))
    }
    return resident
  }
}
