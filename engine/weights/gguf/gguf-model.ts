/** A model out of one GGUF file, as if it were the Hugging Face directory that the file was made of. */
import { type FileHandle, open, stat } from 'node:fs/promises'
import type { Tensor } from 'onnxruntime-node'
import { describeError, GraspError } from '../../../errors/grasp-error.ts'
import type { ModelConfig } from '../../architectures/config.ts'
import { parseModelConfig } from '../model-config.ts'
import type { ModelDirectory } from '../model-directory.ts'
import type { ModelFiles } from '../model-files.ts'
import { parameterShapes } from '../parameter-shapes.ts'
import type { Weights } from '../weights.ts'
import { configJson } from './config-json.ts'
import { type GgufHeader, readGgufHeader } from './gguf-header.ts'
import { readGgufTensor } from './read-tensor.ts'
import { ROTARY_DIVISORS, type TensorPlace, tensorPlace } from './tensor-places.ts'
import { tokenizerFiles } from './tokenizer/tokenizer-files.ts'

/** Whether a model's path is a file: then it must be GGUF. */
export async function isModelFile(path: string): Promise<boolean> {
  return stat(path).then(
    found => found.isFile(),
    () => false,
  )
}

/** Everything but the weights. @throws GraspError MODEL_INVALID, MODEL_UNSUPPORTED */
export function readGgufFiles(path: string): Promise<ModelFiles> {
  return withHeader(path, filesOf)
}

/**
 * Everything is checked by the header before the first tensor is read; then each is turned into f32 as it is read.
 * @throws GraspError MODEL_INVALID naming the file, the tensor and its expected and found shape, when something is
 * missing, damaged or left over; MODEL_UNSUPPORTED when the engine lacks what the model needs.
 */
export function loadGgufModel(path: string): Promise<ModelDirectory> {
  return withHeader(path, async (header, file) => {
    const files = await filesOf(header, file)
    return { ...files, weights: await loadWeights(header, file, files.config) }
  })
}

async function filesOf(header: GgufHeader, file: FileHandle): Promise<ModelFiles> {
  const { path, metadata, tensors } = header
  const divisors = tensors.get(ROTARY_DIVISORS)
  const rawConfig = configJson(
    header,
    divisors && ((await readGgufTensor(path, file, ROTARY_DIVISORS, divisors)).data as Float32Array),
  )
  const config = parseModelConfig(path, rawConfig)
  return {
    path,
    config,
    rawConfig,
    companions: tokenizerFiles(metadata, config.vocabularySize, config.contextLength),
  }
}

async function loadWeights(header: GgufHeader, file: FileHandle, config: ModelConfig): Promise<Weights> {
  const places = new Map<string, TensorPlace>()
  for (const [parameter, shape] of parameterShapes(config)) {
    const place = tensorPlace(config, parameter)
    checkShape(header, place.name, shape)
    places.set(parameter, place)
  }
  checkNothingLeft(header, places)
  const weights = new Map<string, Tensor>()
  for (const [parameter, place] of places) {
    const tensor = header.tensors.get(place.name)!
    weights.set(parameter, await readGgufTensor(header.path, file, place.name, tensor, place))
  }
  return weights
}

function checkShape({ path, tensors }: GgufHeader, name: string, shape: readonly number[]): void {
  const found = tensors.get(name)?.shape
  if (!found)
    throw invalid(`${path} lacks the tensor ${name} [${shape.join(', ')}] that its metadata call for`)
  if (found.join() === shape.join()) return
  throw invalid(
    `${path}: ${name} has the shape [${found.join(', ')}]; its metadata call for [${shape.join(', ')}]`,
  )
}

function checkNothingLeft({ path, tensors }: GgufHeader, places: ReadonlyMap<string, TensorPlace>): void {
  const known = new Set([...places.values()].map(place => place.name)).add(ROTARY_DIVISORS)
  const [extra, ...others] = [...tensors.keys()].filter(name => !known.has(name))
  if (extra === undefined) return
  const more = others.length > 0 ? ` and ${others.length} more` : ''
  throw invalid(`${path} holds the tensor ${extra}${more}, for which its metadata have no place`)
}

async function withHeader<T>(
  path: string,
  use: (header: GgufHeader, file: FileHandle) => Promise<T>,
): Promise<T> {
  let file: FileHandle
  try {
    file = await open(path, 'r')
  } catch (cause) {
    throw new GraspError('MODEL_INVALID', `${path} cannot be opened: ${describeError(cause)}`, { cause })
  }
  try {
    return await use(readGgufHeader(path, file.fd, (await file.stat()).size), file)
  } finally {
    await file.close()
  }
}

function invalid(message: string): GraspError {
  return new GraspError('MODEL_INVALID', message)
}
