/** Reads the values that models.py wrote. */
import { readFile } from 'node:fs/promises'
import { fileURLToPath } from 'node:url'
import type { Tensor } from 'onnxruntime-node'
import type { ModelConfig } from '../../engine/architectures/config.ts'
import { parseModelConfig, type RawConfig } from '../../engine/weights/model-config.ts'
import { readSafetensors } from '../../engine/weights/safetensors.ts'
import { goldenWeights } from './weights.ts'

export const GOLDEN = [
  'llama-tied',
  'llama-untied',
  'llama3',
  'llama-linear',
  'qwen2',
  'qwen3',
  'gemma2',
] as const

/** Those with AdamW steps. */
export const STEPPED: readonly GoldenName[] = ['llama-tied', 'llama-untied', 'gemma2']

export type GoldenName = (typeof GOLDEN)[number]

export interface GoldenItem {
  readonly prompt: Int32Array
  readonly teacherPrompt: Int32Array
  readonly response: Int32Array
}

export interface Golden {
  readonly config: ModelConfig
  /** config.json as transformers writes it. */
  readonly raw: RawConfig
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
  /** The weights `student` or `teacher`, or the stored tensors whose names begin with `prefix.`. */
  tensors(prefix: string): Map<string, Tensor>
}

export async function readGolden(name: GoldenName): Promise<Golden> {
  const path = (extension: string) => fileURLToPath(new URL(`${name}.${extension}`, import.meta.url))
  const json = JSON.parse(await readFile(path('json'), 'utf8'))
  const config = parseModelConfig(path('json'), json.config)
  const stored = await readSafetensors(path('safetensors'))
  return {
    config,
    raw: json.config,
    items: json.items.map((item: Record<string, number[]>) => ({
      prompt: Int32Array.from(item.prompt!),
      teacherPrompt: Int32Array.from(item.teacherPrompt!),
      response: Int32Array.from(item.response!),
    })),
    options: json.options,
    steps: json.steps,
    losses: { 'forward-kl': json['forward-kl'], 'cross-entropy': json['cross-entropy'] },
    gradientNorms: json.gradientNorms,
    tensors(prefix) {
      if (prefix === 'student' || prefix === 'teacher') return new Map(goldenWeights(config, prefix))
      return new Map(
        [...stored]
          .filter(([key]) => key.startsWith(`${prefix}.`))
          .map(([key, tensor]) => [key.slice(prefix.length + 1), tensor]),
      )
    },
  }
}
