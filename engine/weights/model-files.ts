/** What a model is beside its weights: its configuration, tokenizer, template and settings. */
import type { ModelConfig } from '../architectures/config.ts'
import { type Companions, readCompanions } from './companions.ts'
import { isModelFile, readGgufFiles } from './gguf/gguf-model.ts'
import { type RawConfig, readModelConfig } from './model-config.ts'

export interface ModelFiles {
  /** A Hugging Face directory or a GGUF file. */
  readonly path: string
  readonly config: ModelConfig
  readonly rawConfig: RawConfig
  readonly companions: Companions
}

/**
 * Reads everything but the weights.
 * @throws GraspError MODEL_INVALID, MODEL_UNSUPPORTED naming the file and what is wrong in it.
 */
export async function readModelFiles(path: string): Promise<ModelFiles> {
  if (await isModelFile(path)) return readGgufFiles(path)
  const { config, raw } = await readModelConfig(path)
  return { path, config, rawConfig: raw, companions: await readCompanions(path) }
}
