/** Loads the weights of a Hugging Face model directory: one model.safetensors, or shards with their index. */
import { readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { Tensor } from 'onnxruntime-node'
import { z } from 'zod'
import { describeError, GraspError } from '../../errors/grasp-error.ts'
import type { ModelConfig } from '../architectures/config.ts'
import { type Companions, readCompanions } from './companions.ts'
import { type RawConfig, readModelConfig } from './model-config.ts'
import { parameterShapes } from './parameter-shapes.ts'
import { readSafetensors } from './safetensors.ts'
import type { Weights } from './weights.ts'

const SINGLE = 'model.safetensors'
const INDEX = 'model.safetensors.index.json'
const HEAD = 'lm_head.weight'
/** Buffers that old checkpoints stored among the weights; they follow from the configuration. */
const DERIVED = /\.rotary_emb\.inv_freq$/

const indexSchema = z.looseObject({ weight_map: z.record(z.string(), z.string()) })

export interface ModelDirectory {
  readonly path: string
  readonly config: ModelConfig
  readonly rawConfig: RawConfig
  readonly weights: Weights
  readonly companions: Companions
}

/**
 * @throws GraspError MODEL_INVALID naming the file, and the tensor with its expected and found shape, when
 * something is missing, damaged or left over; MODEL_UNSUPPORTED when the engine lacks what the model needs.
 */
export async function loadModelDirectory(path: string): Promise<ModelDirectory> {
  const { config, raw } = await readModelConfig(path)
  const loaded = await loadTensors(path)
  for (const name of loaded.keys()) if (DERIVED.test(name)) loaded.delete(name)
  if (config.tiedHead) loaded.delete(HEAD)
  return {
    path,
    config,
    rawConfig: raw,
    weights: checkWeights(path, config, loaded),
    companions: await readCompanions(path),
  }
}

async function loadTensors(path: string): Promise<Map<string, Tensor>> {
  const index = await readIndex(path)
  if (!index) {
    const names = await readdir(path)
    if (names.includes(SINGLE)) return readSafetensors(join(path, SINGLE))
    throw new GraspError(
      'MODEL_INVALID',
      `${path} has neither ${SINGLE} nor ${INDEX}. Other formats (.bin, .gguf) are not read: load the model ` +
        'with transformers and call save_pretrained, which writes safetensors.',
    )
  }
  const weights = new Map<string, Tensor>()
  for (const file of [...new Set(Object.values(index))].sort()) {
    if (file !== join('/', file).slice(1)) {
      throw new GraspError('MODEL_INVALID', `${join(path, INDEX)} names the file ${file} outside its folder`)
    }
    for (const [name, tensor] of await readSafetensors(join(path, file))) {
      if (index[name] !== file) {
        const expected = index[name] ?? 'no file'
        throw new GraspError(
          'MODEL_INVALID',
          `${join(path, file)} holds ${name}, which ${INDEX} places in ${expected}`,
        )
      }
      weights.set(name, tensor)
    }
  }
  return weights
}

/** Tensor name → shard, or undefined where there is no index. */
async function readIndex(path: string): Promise<Record<string, string> | undefined> {
  const file = join(path, INDEX)
  let text: string
  try {
    text = await readFile(file, 'utf8')
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined
    throw new GraspError('MODEL_INVALID', `${file} cannot be read: ${describeError(error)}`, { cause: error })
  }
  try {
    return indexSchema.parse(JSON.parse(text)).weight_map
  } catch (cause) {
    throw new GraspError('MODEL_INVALID', `${file} is no index of shards: ${describeError(cause)}`, { cause })
  }
}

function checkWeights(path: string, config: ModelConfig, loaded: Map<string, Tensor>): Weights {
  const weights = new Map<string, Tensor>()
  for (const [name, shape] of parameterShapes(config)) {
    const tensor = loaded.get(name)
    if (!tensor) {
      throw new GraspError(
        'MODEL_INVALID',
        `${path} lacks the tensor ${name} [${shape.join(', ')}] that its config.json calls for`,
      )
    }
    if (tensor.dims.join() !== shape.join()) {
      throw new GraspError(
        'MODEL_INVALID',
        `${path}: ${name} has the shape [${tensor.dims.join(', ')}]; its config.json calls for [${shape.join(', ')}]`,
      )
    }
    weights.set(name, tensor)
    loaded.delete(name)
  }
  const [extra] = loaded.keys()
  if (extra !== undefined) {
    const more = loaded.size > 1 ? ` and ${loaded.size - 1} more` : ''
    throw new GraspError(
      'MODEL_INVALID',
      `${path} holds the tensor ${extra}${more}, for which its config.json has no place`,
    )
  }
  return weights
}
