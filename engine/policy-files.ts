/** Policies and the state of training on disk: checkpoints that training goes on from, and Hugging Face directories. */
import { GraspError } from '../errors/grasp-error.ts'
import type { Backend, Held } from './backend.ts'
import { type CheckpointModel, loadCheckpoint, saveCheckpoint } from './checkpoint/checkpoint.ts'
import type { Policies } from './policies.ts'
import type { EngineOptions, ExportOptions, PolicyReference } from './port.ts'
import { notWritten, replaceFolder } from './weights/durable.ts'
import { loadModelDirectory, type ModelDirectory } from './weights/model-directory.ts'
import type { Weights } from './weights/weights.ts'
import { weightsHash } from './weights/weights-hash.ts'
import { writeModel } from './weights/write-model.ts'

/** Every model's directory has it. */
const MODEL_MARK = 'config.json'

/** Stands for the teacher's weights among the policies of a checkpoint: version 0 is not stored. */
const TEACHER: Weights = new Map()

/** The model's directory but for its weights, which the backend holds. */
export type Model = Omit<ModelDirectory, 'weights'>

type TrainingOptions = Pick<EngineOptions, 'lora' | 'optimiserState'>

export class PolicyFiles {
  readonly #options: TrainingOptions
  readonly #model: Model
  readonly #backend: Backend
  readonly #policies: Policies

  constructor(options: TrainingOptions, model: Model, backend: Backend, policies: Policies) {
    this.#options = options
    this.#model = model
    this.#backend = backend
    this.#policies = policies
  }

  /** @param state the caller's, JSON */
  async saveCheckpoint(path: string, state: unknown): Promise<void> {
    const { newest, versions } = this.#policies
    const policies = new Map<number, Weights>()
    for (const [version, held] of versions) {
      policies.set(version, version === 0 && newest !== 0 ? TEACHER : await this.#fetch(held))
    }
    const { optimiser, adapter } = await this.#backend.training()
    const checkpoint = { policyVersion: newest, policies, optimiser, adapter, state }
    await saveCheckpoint(path, await this.#checkpointModel(), checkpoint, await this.#policies.hash(newest))
  }

  /** @returns the caller's state */
  async loadCheckpoint(path: string): Promise<unknown> {
    const checkpoint = await loadCheckpoint(path, await this.#checkpointModel())
    const { teacher } = this.#policies
    const versions = new Map<number, Held>()
    for (const [version, weights] of checkpoint.policies) {
      versions.set(version, weights === TEACHER ? teacher : await this.#backend.hold(weights))
    }
    // Frees the versions before, so that the device need not hold them beside the moments.
    this.#policies.restore(versions, checkpoint.policyVersion)
    await this.#backend.restore({ optimiser: checkpoint.optimiser, adapter: checkpoint.adapter })
    return checkpoint.state
  }

  /** Takes a version that another engine exported. @param expected its weights hash */
  async loadPolicy(version: number, path: string, expected: string): Promise<void> {
    const { weights } = await loadModelDirectory(path)
    const found = weightsHash(weights)
    if (found !== expected) {
      throw new GraspError(
        'CHECKPOINT_INVALID',
        `policy ${version} in ${path} has the weights hash ${found}, expected ${expected}; was the folder overwritten?`,
      )
    }
    this.#policies.put(version, await this.#backend.hold(weights), found)
  }

  async export(
    policy: PolicyReference,
    path: string,
    dtype: 'f32' | 'bf16',
    { replace = false, durable = true }: ExportOptions = {},
  ): Promise<void> {
    const weights = await this.#fetch(this.#policies.get(policy))
    try {
      const fill = async (folder: string) => {
        await writeModel(folder, this.#model, weights, dtype, { durable })
      }
      await replaceFolder(path, replace ? MODEL_MARK : undefined, fill, { durable })
    } catch (cause) {
      throw notWritten(path, cause)
    }
  }

  async #fetch(held: Held): Promise<Weights> {
    const weights = new Map()
    for (const [name, tensor] of held) weights.set(name, await this.#backend.fetch(tensor))
    return weights
  }

  async #checkpointModel(): Promise<CheckpointModel> {
    const { rawConfig, companions } = this.#model
    const { lora, optimiserState } = this.#options
    return {
      rawConfig,
      companions,
      teacher: TEACHER,
      teacherHash: await this.#policies.hash('teacher'),
      lora,
      optimiserState,
    }
  }
}
