/** The teacher and the student's policy versions that the engine holds, with their hashes. */
import { GraspError } from '../errors/grasp-error.ts'
import type { ModelConfig } from './architectures/config.ts'
import type { PolicyReference } from './port.ts'
import type { Side } from './scoring/side.ts'
import { headName } from './weights/parameter-shapes.ts'
import type { Weights } from './weights/weights.ts'
import { tensorHash, weightsHash } from './weights/weights-hash.ts'

export class Policies {
  readonly teacher: Weights
  readonly #config: ModelConfig
  readonly #keep: number
  #versions: Map<number, Weights>
  #newest = 0
  /** Hashing reads every byte, and weights never change: once is enough. */
  readonly #hashes = new WeakMap<object, string>()

  /** Policy version 0 is the teacher. @param keep versions held beside the newest. */
  constructor(config: ModelConfig, teacher: Weights, keep: number) {
    this.#config = config
    this.#keep = keep
    this.teacher = teacher
    this.#versions = new Map([[0, teacher]])
    // Taken now, so that a change shows at the end.
    this.hash('teacher')
  }

  get newest(): number {
    return this.#newest
  }

  /** By version, the newest included. */
  get versions(): ReadonlyMap<number, Weights> {
    return this.#versions
  }

  /** @throws GraspError ENGINE_FAILED when the version is not held. */
  get(policy: PolicyReference): Weights {
    if (policy === 'teacher') return this.teacher
    const weights = this.#versions.get(policy)
    if (weights) return weights
    const held = [...this.#versions.keys()].join(', ')
    throw new GraspError(
      'ENGINE_FAILED',
      `policy version ${policy} is not held; held: ${held}. Raise keepPolicies to use older ones.`,
    )
  }

  /** Makes the next version. @param hash of its weights, where it is known already */
  add(weights: Weights, hash?: string): number {
    this.#newest++
    if (hash !== undefined) this.#hashes.set(weights, hash)
    this.#versions.set(this.#newest, weights)
    this.#drop()
    return this.#newest
  }

  /** Takes a version made elsewhere. */
  put(version: number, weights: Weights): void {
    this.#versions.set(version, weights)
    this.#newest = Math.max(this.#newest, version)
    this.#drop()
  }

  /** Replaces every version. */
  restore(versions: ReadonlyMap<number, Weights>, newest: number): void {
    this.#versions = new Map(versions)
    this.#newest = newest
    this.#drop()
  }

  hash(policy: PolicyReference): string {
    const weights = this.get(policy)
    return this.#once(weights, () => weightsHash(weights))
  }

  /** @throws GraspError ENGINE_FAILED when the teacher's weights are not what they were at the start. */
  checkTeacher(): void {
    const before = this.hash('teacher')
    const now = weightsHash(this.teacher)
    if (now === before) return
    throw new GraspError(
      'ENGINE_FAILED',
      `the teacher's weights changed while the engine ran (hash ${before} before, ${now} now): results are void`,
    )
  }

  side(policy: PolicyReference): Side {
    const weights = this.get(policy)
    const head = weights.get(headName(this.#config))!
    return { weights, head, headHash: this.#once(head, () => tensorHash(head)) }
  }

  #drop(): void {
    for (const version of this.#versions.keys()) {
      if (version < this.#newest - this.#keep) this.#versions.delete(version)
    }
  }

  #once(owner: object, compute: () => string): string {
    const known = this.#hashes.get(owner)
    if (known !== undefined) return known
    const hash = compute()
    this.#hashes.set(owner, hash)
    return hash
  }
}
