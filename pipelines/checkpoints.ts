/**
 * The run's checkpoints on disk. A checkpoint holds the trainer's positions beside the weights they belong to,
 * so updating the weights twice or never is impossible: whatever the log says, training goes on from there.
 */
import { readdir, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { z } from 'zod'
import { clearRemainders, recoverFolder } from '../engine/weights/durable.ts'
import { describeError, GraspError } from '../errors/grasp-error.ts'

export const trainerStateSchema = z.strictObject({
  run: z.string(),
  configHash: z.string(),
  version: z.int().min(0),
  /** The next offset of `slices`, one a partition. */
  positions: z.array(z.int().min(0)),
  best: z.strictObject({ version: z.int(), score: z.number() }).nullable(),
})

export type TrainerState = z.output<typeof trainerStateSchema>

export class Checkpoints {
  readonly #folder: string

  constructor(folder: string) {
    this.#folder = folder
  }

  path(version: number): string {
    return join(this.#folder, this.name(version))
  }

  name(version: number): string {
    return `v${String(version).padStart(6, '0')}`
  }

  /** The versions that have a checkpoint, ascending. One that was about to be replaced when its writer died is put back. */
  async versions(): Promise<number[]> {
    const versions = new Set<number>()
    for (const name of await this.#names()) {
      const [, version, number, replaced] = /^(v(\d{6,}))(\.replaced)?$/.exec(name) ?? []
      if (version === undefined) continue
      if (replaced !== undefined) await recoverFolder(join(this.#folder, version))
      versions.add(Number(number))
    }
    return [...versions].sort((a, b) => a - b)
  }

  /** Checks what a checkpoint carried against the run that wants to go on from it. */
  parse(version: number, state: unknown, run: string, configHash: string): TrainerState {
    const parsed = trainerStateSchema.safeParse(state)
    const path = this.path(version)
    if (!parsed.success) {
      throw new GraspError(
        'CHECKPOINT_INVALID',
        `${path}: its trainer state is not readable; remove that folder to go on from the one before it`,
      )
    }
    if (parsed.data.run !== run || parsed.data.configHash !== configHash) {
      throw new GraspError(
        'CHECKPOINT_INVALID',
        `${path} belongs to run "${parsed.data.run}" with another configuration; choose another output.path or remove it`,
      )
    }
    return parsed.data
  }

  /** Removes all but the given versions, and what was left of writing any. */
  async prune(keep: readonly number[]): Promise<void> {
    const kept = new Set(keep.map(version => this.name(version)))
    for (const name of await this.#names()) {
      const [, version, remainder] = /^(v\d{6,})(\.writing|\.replaced)?$/.exec(name) ?? []
      if (version === undefined) continue
      if (!kept.has(version)) await rm(join(this.#folder, name), { recursive: true, force: true })
      else if (remainder !== undefined) await clearRemainders(join(this.#folder, version))
    }
  }

  async #names(): Promise<string[]> {
    try {
      return await readdir(this.#folder)
    } catch (cause) {
      if ((cause as NodeJS.ErrnoException).code === 'ENOENT') return []
      const message = `cannot read the checkpoints in ${this.#folder}: ${describeError(cause)}`
      throw new GraspError('CHECKPOINT_INVALID', message, { cause })
    }
  }
}
