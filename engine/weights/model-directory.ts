/** Loads a model: a Hugging Face directory (configuration, weights and the files that go with them) or a GGUF file. */
import type { Tensor } from 'onnxruntime-node'
import { GraspError } from '../../errors/grasp-error.ts'
import type { ModelConfig } from '../architectures/config.ts'
import { isModelFile, loadGgufModel } from './gguf/gguf-model.ts'
import { type ModelFiles, readModelFiles } from './model-files.ts'
import { parameterShapes } from './parameter-shapes.ts'
import type { Weights } from './weights.ts'
import { WeightsFiles } from './weights-files.ts'

const HEAD = 'lm_head.weight'
/** Buffers that old checkpoints stored among the weights; they follow from the configuration. */
const DERIVED = /\.rotary_emb\.inv_freq$/

export interface ModelDirectory extends ModelFiles {
  readonly weights: Weights
}

/**
 * Everything is checked by the files' headers before the first tensor is read.
 * @throws GraspError MODEL_INVALID naming the file, and the tensor with its expected and found shape, when
 * something is missing, damaged or left over; MODEL_UNSUPPORTED when the engine lacks what the model needs.
 */
export async function loadModelDirectory(path: string): Promise<ModelDirectory> {
  if (await isModelFile(path)) return loadGgufModel(path)
  const files = await readModelFiles(path)
  return { ...files, weights: await loadWeights(path, files.config) }
}

async function loadWeights(path: string, config: ModelConfig): Promise<Weights> {
  const files = await WeightsFiles.open(path)
  try {
    const shapes = parameterShapes(config)
    checkTensors(path, config, shapes, files)
    const weights = new Map<string, Tensor>()
    for (const name of shapes.keys()) weights.set(name, await files.tensors.get(name)!.read(name))
    return weights
  } finally {
    await files.close()
  }
}

function checkTensors(
  path: string,
  config: ModelConfig,
  shapes: ReadonlyMap<string, readonly number[]>,
  files: WeightsFiles,
): void {
  for (const [name, shape] of shapes) {
    const file = files.tensors.get(name)
    if (!file) {
      throw invalid(`${path} lacks the tensor ${name} [${shape.join(', ')}] that its config.json calls for`)
    }
    const found = file.header.tensors.get(name)!.shape
    if (found.join() !== shape.join()) {
      throw invalid(
        `${path}: ${name} has the shape [${found.join(', ')}]; its config.json calls for [${shape.join(', ')}]`,
      )
    }
    file.checkReadable(name)
  }
  const isKnown = (name: string) =>
    shapes.has(name) || DERIVED.test(name) || (config.tiedHead && name === HEAD)
  const [extra, ...others] = [...files.tensors.keys()].filter(name => !isKnown(name))
  if (extra !== undefined) {
    const more = others.length > 0 ? ` and ${others.length} more` : ''
    throw invalid(`${path} holds the tensor ${extra}${more}, for which its config.json has no place`)
  }
}

function invalid(message: string): GraspError {
  return new GraspError('MODEL_INVALID', message)
}
