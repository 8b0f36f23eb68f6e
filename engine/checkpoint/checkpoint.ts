/**
 * A checkpoint is a Hugging Face directory of the newest policy with what training goes on from beside it:
 * `optimizer.safetensors` (moments `m.NAME` and `v.NAME`), `adapter.safetensors` (the factors of LoRA, where they
 * are trained), `policies/VERSION.safetensors` (older versions that rollouts may still use; version 0, the teacher's
 * weights, is not stored again) and `state.json`. All of it in the format it is held in, so that a restored run goes on
 * with the same bits.
 */
import { createHash } from 'node:crypto'
import { createReadStream } from 'node:fs'
import { mkdir } from 'node:fs/promises'
import { isAbsolute, join, relative } from 'node:path'
import { pipeline } from 'node:stream/promises'
import { isDeepStrictEqual } from 'node:util'
import { Tensor } from 'onnxruntime-node'
import { describeError, GraspError } from '../../errors/grasp-error.ts'
import type { OptimiserState } from '../optimiser/adamw.ts'
import type { LoraOptions, OptimiserDtype } from '../port.ts'
import { notWritten, recoverFolder, replaceFolder, syncFolder, writeDurably } from '../weights/durable.ts'
import { narrowBf16 } from '../weights/half.ts'
import { loadModelDirectory, type ModelDirectory } from '../weights/model-directory.ts'
import { readSafetensors, SafetensorsFile, writeSafetensors } from '../weights/safetensors.ts'
import type { Weights } from '../weights/weights.ts'
import { writeModel } from '../weights/write-model.ts'
import { readState, STATE_FILE, stateJson, WITHOUT_IT } from './checkpoint-state.ts'

const OPTIMISER_FILE = 'optimizer.safetensors'
const ADAPTER_FILE = 'adapter.safetensors'
const POLICIES = 'policies'

export interface Checkpoint {
  readonly policyVersion: number
  /** By version; the newest is `policyVersion`. */
  readonly policies: ReadonlyMap<number, Weights>
  /** Undefined before the first step. */
  readonly optimiser: OptimiserState | undefined
  /** The factors of LoRA; undefined before the first gradient, and where the weights themselves are trained. */
  readonly adapter?: Weights | undefined
  /** The caller's, JSON. */
  readonly state: unknown
}

/** The model that the checkpoint belongs to. */
export interface CheckpointModel extends Pick<ModelDirectory, 'rawConfig' | 'companions'> {
  readonly teacher: Weights
  readonly teacherHash: string
  readonly lora?: LoraOptions | undefined
  /** How moments are held once they are loaded; f32 by default. */
  readonly optimiserState?: OptimiserDtype | undefined
}

/**
 * Durable and complete when it returns; before that, `path` is what it was.
 * @param newestHash the weights hash of the newest policy
 */
export async function saveCheckpoint(
  path: string,
  model: CheckpointModel,
  checkpoint: Checkpoint,
  newestHash: string,
): Promise<void> {
  const { policyVersion, policies, optimiser, adapter } = checkpoint
  const newest = policies.get(policyVersion)!
  const kept = [...policies.keys()].filter(version => version !== policyVersion).sort((a, b) => a - b)
  try {
    await replaceFolder(path, STATE_FILE, async folder => {
      const files = await writeModel(folder, model, newest, 'f32')
      if (optimiser) {
        files[OPTIMISER_FILE] = await writeSafetensors(join(folder, OPTIMISER_FILE), moments(optimiser), {
          dtype: 'f32',
        })
      }
      if (adapter) {
        files[ADAPTER_FILE] = await writeSafetensors(join(folder, ADAPTER_FILE), adapter, { dtype: 'f32' })
      }
      const stored = kept.filter(version => version !== 0)
      if (stored.length > 0) await mkdir(join(folder, POLICIES))
      for (const version of stored) {
        const file = policyFile(version)
        files[file] = await writeSafetensors(join(folder, file), policies.get(version)!, { dtype: 'f32' })
      }
      if (stored.length > 0) await syncFolder(join(folder, POLICIES))
      const state = stateJson({
        policyVersion,
        weightsHash: newestHash,
        teacherHash: model.teacherHash,
        optimiserSteps: optimiser?.steps ?? 0,
        ...(model.lora && { lora: { ...model.lora, targets: [...model.lora.targets] } }),
        keptPolicies: kept,
        files,
        state: checkpoint.state,
      })
      await writeDurably(join(folder, STATE_FILE), state)
    })
  } catch (cause) {
    throw notWritten(`checkpoint ${path}`, cause)
  }
}

/**
 * Verifies every file against its hash before anything is used.
 * @throws GraspError CHECKPOINT_INVALID naming the file that is damaged or missing, or what does not fit.
 */
export async function loadCheckpoint(path: string, model: CheckpointModel): Promise<Checkpoint> {
  try {
    await recoverFolder(path)
    const state = await readState(path)
    if (state.teacherHash !== model.teacherHash) {
      throw new GraspError(
        'CHECKPOINT_INVALID',
        `${path} belongs to another model: its teacher's weights have the hash ${state.teacherHash}, ` +
          `this model's ${model.teacherHash}. Start from the model that the run began with.`,
      )
    }
    checkTrained(path, state.lora, model.lora)
    for (const [file, hash] of Object.entries(state.files)) await verify(path, file, hash)
    const policies = new Map<number, Weights>()
    for (const version of [...state.keptPolicies, state.policyVersion]) {
      policies.set(
        version,
        version === 0 ? model.teacher : await readPolicy(path, version, state.policyVersion),
      )
    }
    const optimiser =
      OPTIMISER_FILE in state.files
        ? await readMoments(join(path, OPTIMISER_FILE), state.optimiserSteps, model.optimiserState)
        : undefined
    const adapter = ADAPTER_FILE in state.files ? await readSafetensors(join(path, ADAPTER_FILE)) : undefined
    return { policyVersion: state.policyVersion, policies, optimiser, adapter, state: state.state }
  } catch (cause) {
    if (cause instanceof GraspError && cause.code === 'CHECKPOINT_INVALID') throw cause
    throw new GraspError('CHECKPOINT_INVALID', `checkpoint ${path}: ${describeError(cause)}`, { cause })
  }
}

async function readPolicy(path: string, version: number, newest: number): Promise<Weights> {
  if (version === newest) return (await loadModelDirectory(path)).weights
  return readSafetensors(join(path, policyFile(version)))
}

function policyFile(version: number): string {
  return `${POLICIES}/${version}.safetensors`
}

function moments({ m, v }: OptimiserState): Weights {
  const all = new Map<string, Tensor>()
  for (const [name, tensor] of m) all.set(`m.${name}`, tensor)
  for (const [name, tensor] of v) all.set(`v.${name}`, tensor)
  return all
}

/** @param dtype how they are held from now on; numbers that were stored in it are what they were */
async function readMoments(
  path: string,
  steps: number,
  dtype: OptimiserDtype = 'f32',
): Promise<OptimiserState> {
  const state: OptimiserState = { steps, m: new Map(), v: new Map() }
  const file = await SafetensorsFile.open(path)
  try {
    for (const name of file.header.tensors.keys()) {
      const tensor = await file.read(name)
      const held = dtype === 'f32' ? tensor : toBf16(tensor)
      state[name[0] as 'm' | 'v'].set(name.slice(2), held)
    }
  } finally {
    await file.close()
  }
  return state
}

function toBf16({ data, dims }: Tensor): Tensor {
  return new Tensor('uint16', narrowBf16(data as Float32Array), dims)
}

function checkTrained(path: string, found: LoraOptions | undefined, expected: LoraOptions | undefined): void {
  if (isDeepStrictEqual(found, expected)) return
  const words = (lora: LoraOptions | undefined) =>
    lora ? `an adapter (${JSON.stringify(lora)})` : 'all parameters'
  throw new GraspError(
    'CHECKPOINT_INVALID',
    `${path} trains ${words(found)}, and this engine ${words(expected)}. Go on with the training.lora that the run began with.`,
  )
}

/**
 * The adapter of a checkpoint, and how it was made; undefined where all parameters are trained, or before the first gradient.
 * @throws GraspError CHECKPOINT_INVALID
 */
export async function readAdapter(
  path: string,
): Promise<{ adapter: Weights; lora: LoraOptions } | undefined> {
  const { lora, files } = await readState(path)
  const hash = files[ADAPTER_FILE]
  if (lora === undefined || hash === undefined) return undefined
  await verify(path, ADAPTER_FILE, hash)
  return { adapter: await readSafetensors(join(path, ADAPTER_FILE)), lora }
}

async function verify(folder: string, file: string, expected: string): Promise<void> {
  const path = join(folder, file)
  const inside = relative(folder, path)
  if (inside.startsWith('..') || isAbsolute(inside)) {
    throw new GraspError(
      'CHECKPOINT_INVALID',
      `${join(folder, STATE_FILE)} names ${file}, outside its folder`,
    )
  }
  const hash = createHash('sha256')
  try {
    await pipeline(createReadStream(path, { highWaterMark: 1 << 20 }), hash)
  } catch (cause) {
    const message = `${path}, which ${STATE_FILE} names, cannot be read: ${describeError(cause)}. ${WITHOUT_IT}`
    throw new GraspError('CHECKPOINT_INVALID', message, { cause })
  }
  if (hash.digest('hex') === expected) return
  throw new GraspError(
    'CHECKPOINT_INVALID',
    `${path} is damaged: its hash is not the one that ${STATE_FILE} names. ${WITHOUT_IT}`,
  )
}
