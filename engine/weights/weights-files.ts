/** Where a model directory keeps its tensors: in model.safetensors, or in shards that an index names. */
import { readFile, readlink, stat } from 'node:fs/promises'
import { join, posix, win32 } from 'node:path'
import { z } from 'zod'
import { describeError, GraspError } from '../../errors/grasp-error.ts'
import { SafetensorsFile } from './safetensors.ts'

export const SINGLE_FILE = 'model.safetensors'
export const INDEX_FILE = 'model.safetensors.index.json'

const indexSchema = z.looseObject({ weight_map: z.record(z.string(), z.string()) })

/** Shards are numbered from 1. */
export function shardName(number: number, of: number): string {
  const digits = (value: number) => String(value).padStart(5, '0')
  return `model-${digits(number)}-of-${digits(of)}.safetensors`
}

/** The open files of a model directory. */
export class WeightsFiles {
  readonly #files: readonly SafetensorsFile[]
  /** The file of each tensor. */
  readonly tensors: ReadonlyMap<string, SafetensorsFile>

  private constructor(files: readonly SafetensorsFile[], tensors: ReadonlyMap<string, SafetensorsFile>) {
    this.#files = files
    this.tensors = tensors
  }

  /**
   * Reads the headers alone. Where both are there, model.safetensors counts, as it does for transformers.
   * @throws GraspError MODEL_INVALID when there are no weights, when a file is damaged, or when the files and their
   * index do not agree.
   */
  static async open(folder: string): Promise<WeightsFiles> {
    const index = (await isThere(join(folder, SINGLE_FILE))) ? undefined : await readIndex(folder)
    const names = index === undefined ? [SINGLE_FILE] : [...new Set(Object.values(index))].sort()
    const files: SafetensorsFile[] = []
    try {
      for (const name of names) files.push(await SafetensorsFile.open(join(folder, name)))
      const tensors = placesOf(files)
      if (index !== undefined) checkIndex(folder, index, tensors)
      return new WeightsFiles(files, tensors)
    } catch (error) {
      await Promise.all(files.map(file => file.close()))
      throw error
    }
  }

  async close(): Promise<void> {
    await Promise.all(this.#files.map(file => file.close()))
  }
}

function placesOf(files: readonly SafetensorsFile[]): Map<string, SafetensorsFile> {
  const places = new Map<string, SafetensorsFile>()
  for (const file of files) {
    for (const name of file.header.tensors.keys()) {
      const other = places.get(name)
      if (other)
        throw invalid(`${other.path} and ${file.path} both hold ${name}; which one counts is not known`)
      places.set(name, file)
    }
  }
  return places
}

function checkIndex(
  folder: string,
  index: Readonly<Record<string, string>>,
  tensors: ReadonlyMap<string, SafetensorsFile>,
): void {
  for (const [name, shard] of Object.entries(index)) {
    const path = join(folder, shard)
    const found = tensors.get(name)?.path
    if (found === path) continue
    const where = found === undefined ? 'which does not have it' : `but it is in ${found}`
    throw invalid(`${join(folder, INDEX_FILE)} places ${name} in ${shard}, ${where}`)
  }
  for (const [name, file] of tensors) {
    if (!Object.hasOwn(index, name))
      throw invalid(`${file.path} holds ${name}, which ${INDEX_FILE} does not list`)
  }
}

/** Tensor name → shard. */
async function readIndex(folder: string): Promise<Record<string, string>> {
  const path = join(folder, INDEX_FILE)
  let index: Record<string, string>
  try {
    index = indexSchema.parse(JSON.parse(await readFile(path, 'utf8'))).weight_map
  } catch (cause) {
    if ((cause as NodeJS.ErrnoException).code === 'ENOENT') {
      throw invalid(
        `${folder} has neither ${SINGLE_FILE} nor ${INDEX_FILE}. Of PyTorch's .bin files safetensors are made by ` +
          'loading them with transformers and calling save_pretrained.',
      )
    }
    const why =
      cause instanceof z.ZodError ? z.prettifyError(cause).replace(/\s+/g, ' ') : describeError(cause)
    throw new GraspError('MODEL_INVALID', `${path} is no index of shards: ${why}`, { cause })
  }
  for (const shard of new Set(Object.values(index))) {
    if (!isInside(shard)) throw invalid(`${path} names the file ${shard} outside its folder`)
    if (!(await isThere(join(folder, shard)))) {
      throw invalid(`${path} names ${shard}, which is not there; fetch all files of the model`)
    }
  }
  return index
}

/** By name only: a file may be a link, as all are in the cache of Hugging Face's own tools. */
function isInside(name: string): boolean {
  const parts = name.split(/[\\/]/)
  return !posix.isAbsolute(name) && !win32.isAbsolute(name) && !parts.includes('..') && !parts.includes('')
}

/** A pipe or a device would be waited for, or read without an end. */
async function isThere(path: string): Promise<boolean> {
  try {
    if ((await stat(path)).isFile()) return true
    throw invalid(`${path} is not a file`)
  } catch (error) {
    if (error instanceof GraspError) throw error
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') {
      const target = await readlink(path).catch(() => undefined)
      if (target === undefined) return false
      throw invalid(`${path} is a link to ${target}, which is not there; fetch the model's files again`)
    }
    throw new GraspError('MODEL_INVALID', `${path} cannot be read: ${describeError(error)}`, { cause: error })
  }
}

function invalid(message: string): GraspError {
  return new GraspError('MODEL_INVALID', message)
}
