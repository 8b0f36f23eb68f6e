/** Reads the values that llama.py wrote. */
import { readFile } from 'node:fs/promises'
import { fileURLToPath } from 'node:url'
import type { Tensor } from 'onnxruntime-node'
import type { ModelConfig } from '../../engine/architectures/config.ts'
import { parseModelConfig } from '../../engine/weights/model-config.ts'
import { readSafetensors } from '../../engine/weights/safetensors.ts'

export interface GoldenItem {
  readonly prompt: Int32Array
  readonly teacherPrompt: Int32Array
  readonly response: Int32Array
}

export interface Golden {
  readonly config: ModelConfig
  readonly items: readonly GoldenItem[]
  readonly options: {
    readonly learningRate: number
    readonly betas: readonly [number, number]
    readonly epsilon: number
    readonly weightDecay: number
    readonly clip: number
  }
  readonly steps: number
  readonly losses: Readonly<Record<'forward-kl' | 'cross-entropy', readonly number[]>>
  readonly gradientNorms: readonly number[]
  /** Tensors whose names begin with `prefix.`, by the rest of their names. */
  tensors(prefix: string): Map<string, Tensor>
}

export async function readGolden(name: 'llama-tied' | 'llama-untied'): Promise<Golden> {
  const path = (extension: string) => fileURLToPath(new URL(`${name}.${extension}`, import.meta.url))
  const json = JSON.parse(await readFile(path('json'), 'utf8'))
  const tensors = await readSafetensors(path('safetensors'))
  return {
    config: parseModelConfig(path('json'), json.config),
    items: json.items.map((item: Record<string, number[]>) => ({
      prompt: Int32Array.from(item.prompt!),
      teacherPrompt: Int32Array.from(item.teacherPrompt!),
      response: Int32Array.from(item.response!),
    })),
    options: json.options,
    steps: json.steps,
    losses: { 'forward-kl': json['forward-kl'], 'cross-entropy': json['cross-entropy'] },
    gradientNorms: json.gradientNorms,
    tensors: prefix =>
      new Map(
        [...tensors]
          .filter(([key]) => key.startsWith(`${prefix}.`))
          .map(([key, tensor]) => [key.slice(prefix.length + 1), tensor]),
      ),
  }
}
