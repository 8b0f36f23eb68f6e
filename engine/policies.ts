/** The teacher and the student's policy versions that the engine holds, with their hashes. */
import { createHash } from 'node:crypto'
import { GraspError } from '../errors/grasp-error.ts'
import type { ModelConfig } from './architectures/config.ts'
import type { Backend, Held } from './backend.ts'
import type { PolicyReference } from './port.ts'
import type { Side } from './scoring/side.ts'
import { headName } from './weights/parameter-shapes.ts'
import { tensorHash, WeightsHasher } from './weights/weights-hash.ts'

/** What is asked of the backend that holds them. */
export type PolicyBackend = Pick<Backend, 'fetch' | 'release'>

export class Policies {
  readonly teacher: Held
  readonly #backend: PolicyBackend
  readonly #config: ModelConfig
  readonly #keep: number
  #versions: Map<number, Held>
  #newest = 0
  /** Hashing reads every byte, and weights do not change while they are held: once is enough. */
  readonly #hashes = new WeakMap<object, string>()

  private constructor(backend: PolicyBackend, config: ModelConfig, teacher: Held, keep: number) {
    this.#backend = backend
    this.#config = config
    this.#keep = keep
    this.teacher = teacher
    this.#versions = new Map([[0, teacher]])
  }

  /** Policy version 0 is the teacher. @param keep versions held beside the newest. */
  static async create(
    backend: PolicyBackend,
    config: ModelConfig,
    teacher: Held,
    keep: number,
  ): Promise<Policies> {
    const policies = new Policies(backend, config, teacher, keep)
    // Taken now, so that a change shows at the end.
    await policies.hash('teacher')
    return policies
  }

  get newest(): number {
    return this.#newest
  }

  /** By version, the newest included. */
  get versions(): ReadonlyMap<number, Held> {
    return this.#versions
  }

  /** Version 0 always is, since it is the teacher. @throws GraspError ENGINE_FAILED when another is not held. */
  get(policy: PolicyReference): Held {
    if (policy === 'teacher' || policy === 0) return this.teacher
    const weights = this.#versions.get(policy)
    if (weights) return weights
    const held = [...this.#versions.keys()].join(', ')
    throw new GraspError(
      'ENGINE_FAILED',
      `policy version ${policy} is not held; held: ${held}. Raise keepPolicies (a run's rollout.lag) to use older ones.`,
    )
  }

  /** Makes the next version. @param hash of its weights, where it is known already */
  add(weights: Held, hash?: string): number {
    this.#newest++
    if (hash !== undefined) this.#hashes.set(weights, hash)
    this.#versions.set(this.#newest, weights)
    this.#drop()
    return this.#newest
  }

  /** Takes a version made elsewhere. @param hash of its weights */
  put(version: number, weights: Held, hash: string): void {
    const before = this.#versions.get(version)
    this.#hashes.set(weights, hash)
    this.#versions.set(version, weights)
    if (before) this.#release(before)
    this.#newest = Math.max(this.#newest, version)
    this.#drop()
  }

  /** Replaces every version. */
  restore(versions: ReadonlyMap<number, Held>, newest: number): void {
    const before = [...this.#versions.values()]
    this.#versions = new Map(versions)
    this.#newest = newest
    for (const weights of before) this.#release(weights)
    this.#drop()
  }

  /** sha256 over the weights, in the order of their names. */
  async hash(policy: PolicyReference): Promise<string> {
    const weights = this.get(policy)
    return this.#once(weights, () => this.#hash(weights))
  }

  /** @throws GraspError ENGINE_FAILED when the teacher's weights are not what they were at the start. */
  async checkTeacher(): Promise<void> {
    const before = await this.hash('teacher')
    const now = await this.#hash(this.teacher)
    if (now === before) return
    throw new GraspError(
      'ENGINE_FAILED',
      `the teacher's weights changed while the engine ran (hash ${before} before, ${now} now): results are void`,
    )
  }

  async side(policy: PolicyReference): Promise<Side> {
    const weights = this.get(policy)
    const head = weights.get(headName(this.#config))!
    const headHash = await this.#once(head, async () => tensorHash(await this.#backend.fetch(head)))
    return { weights, head, headHash }
  }

  /** Gives all of them up. */
  free(): void {
    const all = [this.teacher, ...this.#versions.values()]
    this.#versions = new Map()
    for (const weights of all) this.#backend.release(weights, [])
  }

  #drop(): void {
    for (const [version, weights] of [...this.#versions]) {
      if (version >= this.#newest - this.#keep) continue
      this.#versions.delete(version)
      this.#release(weights)
    }
  }

  #release(weights: Held): void {
    this.#backend.release(weights, [this.teacher, ...this.#versions.values()])
  }

  async #hash(weights: Held): Promise<string> {
    const hasher = new WeightsHasher(createHash('sha256'))
    for (const name of [...weights.keys()].sort()) {
      hasher.add(name, await this.#backend.fetch(weights.get(name)!))
    }
    return hasher.digest()
  }

  async #once(owner: object, compute: () => Promise<string>): Promise<string> {
    const known = this.#hashes.get(owner)
    if (known !== undefined) return known
    const hash = await compute()
    this.#hashes.set(owner, hash)
    return hash
  }
}
