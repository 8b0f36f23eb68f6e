/** What the engine needs of a model family: how it reads config.json, and its layer. Everything else is shared. */
import { GraspError } from '../../errors/grasp-error.ts'
import type { ModelConfig } from './config.ts'
import type { ConfigFile } from './config-file.ts'
import { gemma2 } from './gemma2.ts'
import type { LayerOperations } from './layer-operations.ts'
import { llama } from './llama.ts'
import { qwen2 } from './qwen2.ts'
import { qwen3 } from './qwen3.ts'

export interface Architecture {
  /** `model_type` of config.json. */
  readonly name: string

  /** @throws GraspError MODEL_INVALID, MODEL_UNSUPPORTED naming the option, what was found and what is supported. */
  configure(file: ConfigFile): ModelConfig

  /** One decoder layer: x [.., D] to [.., D]. Every layer of a model has the same operations and parameters. */
  layer<X>(ops: LayerOperations<X>, config: ModelConfig, x: X): X
}

const ARCHITECTURES: ReadonlyMap<string, Architecture> = new Map(
  [llama, qwen2, qwen3, gemma2].map(architecture => [architecture.name, architecture]),
)

/** The names of what is supported. */
export const SUPPORTED_ARCHITECTURES: readonly string[] = [...ARCHITECTURES.keys()]

export function architectureNamed(name: string): Architecture | undefined {
  return ARCHITECTURES.get(name)
}

/** @throws GraspError MODEL_UNSUPPORTED */
export function architectureOf({ architecture }: ModelConfig): Architecture {
  const found = architectureNamed(architecture)
  if (found) return found
  throw new GraspError(
    'MODEL_UNSUPPORTED',
    `model_type ${architecture} is not supported; supported: ${SUPPORTED_ARCHITECTURES.join(', ')}`,
  )
}
