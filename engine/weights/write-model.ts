/** Writes a Hugging Face model directory that transformers loads. */
import { createHash } from 'node:crypto'
import { join } from 'node:path'
import { writeDurably } from './durable.ts'
import type { ModelDirectory } from './model-directory.ts'
import { writeSafetensors } from './safetensors.ts'
import type { Weights } from './weights.ts'

const WEIGHTS_FILE = 'model.safetensors'

/**
 * Weights, config.json with their dtype, and the source model's tokenizer files, into an existing folder.
 * @returns sha256 (hex) of each file by name.
 */
export async function writeModel(
  folder: string,
  source: Pick<ModelDirectory, 'rawConfig' | 'companions'>,
  weights: Weights,
  dtype: 'f32' | 'bf16',
): Promise<Record<string, string>> {
  const files: Record<string, string> = {}
  const write = async (name: string, content: Uint8Array) => {
    files[name] = createHash('sha256').update(content).digest('hex')
    await writeDurably(join(folder, name), content)
  }
  const config = { ...source.rawConfig, ...dtypeFields(source.rawConfig, dtype) }
  await write('config.json', Buffer.from(`${JSON.stringify(config, null, 2)}\n`))
  for (const [name, content] of source.companions) await write(name, content)
  files[WEIGHTS_FILE] = await writeSafetensors(join(folder, WEIGHTS_FILE), weights, {
    dtype,
    // transformers refuses files that do not name a framework.
    metadata: { format: 'pt' },
  })
  return files
}

/** `torch_dtype`, which newer configurations call `dtype`. */
function dtypeFields(config: ModelDirectory['rawConfig'], dtype: 'f32' | 'bf16'): Record<string, string> {
  const value = dtype === 'f32' ? 'float32' : 'bfloat16'
  return 'dtype' in config && !('torch_dtype' in config) ? { dtype: value } : { torch_dtype: value }
}
