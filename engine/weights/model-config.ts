/** Reads config.json of a Hugging Face directory; its architecture says what it means. */
import { existsSync } from 'node:fs'
import { readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { z } from 'zod'
import { describeError, GraspError } from '../../errors/grasp-error.ts'
import { architectureNamed, SUPPORTED_ARCHITECTURES } from '../architectures/architecture.ts'
import type { ModelConfig } from '../architectures/config.ts'
import { ConfigFile } from '../architectures/config-file.ts'
import { isPointer, LFS_POINTER } from './lfs-pointer.ts'

/** config.json as it stands: exports copy it. */
export type RawConfig = Readonly<Record<string, unknown>>

/**
 * @param directory a Hugging Face model directory.
 * @throws GraspError MODEL_INVALID when config.json is missing or wrong, MODEL_UNSUPPORTED when it asks for
 * something that the engine lacks.
 */
export async function readModelConfig(directory: string): Promise<{ config: ModelConfig; raw: RawConfig }> {
  const path = join(directory, 'config.json')
  let raw: unknown
  try {
    const text = await readFile(path, 'utf8')
    if (text.startsWith(LFS_POINTER)) throw isPointer(path)
    raw = JSON.parse(text)
  } catch (cause) {
    if (cause instanceof GraspError) throw cause
    const files = await readdir(directory).catch(() => [])
    const gguf = files.find(name => name.endsWith('.gguf'))
    const hint =
      gguf === undefined
        ? 'A model is a Hugging Face directory with config.json, *.safetensors and tokenizer.json, or a GGUF file.'
        : `There is a GGUF file: name ${join(directory, gguf)} itself.`
    const isAbsent = (cause as NodeJS.ErrnoException).code === 'ENOENT'
    const what = isAbsent
      ? `${existsSync(directory) ? path : directory} is not there`
      : `${path} cannot be read: ${describeError(cause)}`
    throw new GraspError('MODEL_INVALID', `${what}. ${hint}`, { cause })
  }
  return { config: parseModelConfig(path, raw), raw: raw as RawConfig }
}

/**
 * @param path names the file in errors.
 * @throws GraspError MODEL_INVALID, MODEL_UNSUPPORTED
 */
export function parseModelConfig(path: string, raw: unknown): ModelConfig {
  const file = new ConfigFile(path, raw)
  const type = z.looseObject({ model_type: z.string() }).safeParse(raw)
  if (!type.success) throw file.invalid('it lacks model_type')
  const name = type.data.model_type
  const architecture = architectureNamed(name)
  if (!architecture) throw file.unsupported('model_type', name, SUPPORTED_ARCHITECTURES.join(', '))
  return architecture.configure(file)
}
