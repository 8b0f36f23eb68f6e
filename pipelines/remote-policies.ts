/**
 * Policies for stages that do not share the trainer's engine: the trainer publishes each version in `policies`,
 * and the checkpoint that the record names is loaded into this process's engine when a batch needs it.
 */
import { rm } from 'node:fs/promises'
import { setTimeout } from 'node:timers/promises'
import type { Log } from '../bus/port.ts'
import type { Engine } from '../engine/port.ts'
import { describeError, GraspError } from '../errors/grasp-error.ts'
import type { PolicySource } from '../operators/policy-gate.ts'
import type { Policy } from '../schemas/types.ts'
import { fetchPolicy } from './fetch-policy.ts'
import { isPublished } from './publish.ts'

/** How often `policies` is looked at while a version is waited for, milliseconds. */
const POLL_MS = 100

export interface RemotePoliciesOptions {
  readonly log: Log
  readonly engine: Engine
  /** Where policies that come by URL lie until they are loaded; no other process may use it. */
  readonly cache: string
  readonly stopped: () => boolean
}

export class RemotePolicies implements PolicySource {
  readonly #options: RemotePoliciesOptions
  readonly #closing = new AbortController()
  readonly #known = new Map<number, Policy>()
  readonly #loaded = new Map<number, Promise<void>>()
  /** The next offset to look at, by partition. */
  readonly #next = new Map<number, number>()

  constructor(options: RemotePoliciesOptions) {
    this.#options = options
  }

  async reached(version: number): Promise<void> {
    if (version === 0) return // the backbone, which every engine starts with
    let loading = this.#loaded.get(version)
    if (loading === undefined) {
      loading = this.#load(version)
      this.#loaded.set(version, loading)
    }
    await loading
  }

  /** Breaks off what is still fetched, so that the next who fetches finds nobody in the same folder. */
  async close(): Promise<void> {
    this.#closing.abort()
    await Promise.allSettled(this.#loaded.values())
  }

  async #load(version: number): Promise<void> {
    const { engine, cache, stopped } = this.#options
    const { signal } = this.#closing
    for (;;) {
      await this.#look()
      const policy = this.#known.get(version)
      if (policy !== undefined) {
        const { path, weightsHash } = policy
        const folder = await fetchPolicy(path, cache, version, signal)
        try {
          return await engine.loadPolicy(version, folder, weightsHash)
        } catch (error) {
          throw unusable(version, error)
        } finally {
          // The engine has it now; what was fetched would pile up, version by version.
          if (folder !== path) await rm(folder, { recursive: true, force: true })
        }
      }
      if (stopped() || signal.aborted)
        throw new GraspError('INTERRUPTED', `stopped while waiting for policy ${version}`)
      await setTimeout(POLL_MS)
    }
  }

  async #look(): Promise<void> {
    const { log } = this.#options
    const info = (await log.topics()).find(({ topic }) => topic === 'policies')
    for (const [partition, end] of (info?.ends ?? []).entries()) {
      const offset = this.#next.get(partition) ?? 0
      if (offset >= end) continue
      for await (const record of log.scan('policies', { partition, from: { offset } })) {
        const { value } = record
        // The trainer's own checkpoints are where others may not look, and go sooner.
        if (value !== undefined && isPublished(value)) this.#known.set(value.version, value)
        this.#next.set(partition, record.offset + 1)
      }
    }
  }
}

function unusable(version: number, cause: unknown): unknown {
  const isDamage =
    cause instanceof GraspError && (cause.code === 'MODEL_INVALID' || cause.code === 'CHECKPOINT_INVALID')
  if (!isDamage) return cause
  return new GraspError(
    'CHECKPOINT_INVALID',
    `policy ${version}, as it was published, cannot be used: ${describeError(cause)}. After a power cut, start the ` +
      'training stage, which publishes it again, and then this one',
    { cause },
  )
}
