/** Writes a Hugging Face model directory that transformers loads. */
import { createHash } from 'node:crypto'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { Tensor } from 'onnxruntime-node'
import { configJson } from './config-json.ts'
import { writeDurably } from './durable.ts'
import type { ModelDirectory } from './model-directory.ts'
import { storedBytes, writeSafetensors } from './safetensors.ts'
import type { Weights } from './weights.ts'
import { INDEX_FILE, SINGLE_FILE, shardName } from './weights-files.ts'

/** Most bytes of one file of weights, unless one tensor is larger: what transformers made of models for years. */
const SHARD_BYTES = 5e9

export interface WriteModelOptions {
  /** Weights that take more are spread over several files, with an index. */
  readonly shardBytes?: number
  /** Whether every file is on the disk when the call returns; true by default. */
  readonly durable?: boolean
}

/**
 * Weights, config.json with their dtype, and the source model's tokenizer files, into an existing, empty folder.
 * @returns sha256 (hex) of each file by name.
 */
export async function writeModel(
  folder: string,
  source: Pick<ModelDirectory, 'rawConfig' | 'companions'>,
  weights: Weights,
  dtype: 'f32' | 'bf16',
  { shardBytes = SHARD_BYTES, durable = true }: WriteModelOptions = {},
): Promise<Record<string, string>> {
  const files: Record<string, string> = {}
  const write = async (name: string, content: Uint8Array) => {
    files[name] = createHash('sha256').update(content).digest('hex')
    await (durable ? writeDurably : writeFile)(join(folder, name), content)
  }
  const config = { ...source.rawConfig, ...dtypeFields(source.rawConfig, dtype) }
  await write('config.json', configJson(config))
  for (const [name, content] of source.companions) await write(name, content)
  // transformers refuses files that do not name a framework.
  const options = { dtype, metadata: { format: 'pt' }, durable }
  const shards = shardsOf(weights, dtype, shardBytes)
  for (const [i, shard] of shards.entries()) {
    const name = nameOf(i, shards.length)
    files[name] = await writeSafetensors(join(folder, name), shard, options)
  }
  if (shards.length > 1) await write(INDEX_FILE, json(indexOf(shards, dtype)))
  return files
}

/** Cut in the order of the names. */
function shardsOf(weights: Weights, dtype: 'f32' | 'bf16', limit: number): Weights[] {
  let [shard, size] = [new Map<string, Tensor>(), 0]
  const shards = [shard]
  for (const name of [...weights.keys()].sort()) {
    const tensor = weights.get(name)!
    const bytes = storedBytes(tensor, dtype)
    if (shard.size > 0 && size + bytes > limit) {
      ;[shard, size] = [new Map(), 0]
      shards.push(shard)
    }
    shard.set(name, tensor)
    size += bytes
  }
  return shards
}

function indexOf(shards: readonly Weights[], dtype: 'f32' | 'bf16'): unknown {
  const weight_map: Record<string, string> = {}
  let total_size = 0
  for (const [i, shard] of shards.entries()) {
    for (const [name, tensor] of shard) {
      weight_map[name] = nameOf(i, shards.length)
      total_size += storedBytes(tensor, dtype)
    }
  }
  return { metadata: { total_size }, weight_map }
}

function nameOf(index: number, of: number): string {
  return of === 1 ? SINGLE_FILE : shardName(index + 1, of)
}

/** `torch_dtype`, which newer configurations call `dtype`. */
function dtypeFields(config: ModelDirectory['rawConfig'], dtype: 'f32' | 'bf16'): Record<string, string> {
  const value = dtype === 'f32' ? 'float32' : 'bfloat16'
  return 'dtype' in config && !('torch_dtype' in config) ? { dtype: value } : { torch_dtype: value }
}

function json(value: unknown): Uint8Array {
  return Buffer.from(`${JSON.stringify(value, null, 2)}\n`)
}
