import type { Logger } from 'pino'
import type { Observable } from 'rxjs'
import type { Log } from '../bus/port.ts'
import type { Engine, ModelInfo, SamplingOptions } from '../engine/port.ts'
import type { Judge } from '../judges/port.ts'
import type { PolicyGate } from '../operators/policy-gate.ts'
import type { PromptTemplate } from '../prompts/prompt.ts'
import type { Retriever } from '../retrievers/port.ts'
import type { Config } from './config/config.ts'
import type { ProgressEvent } from './events.ts'

/** What the stages of one run share. */
export interface RunContext {
  readonly config: Config
  readonly configHash: string
  readonly log: Log
  readonly engine: Engine
  readonly info: ModelInfo
  readonly prompt: PromptTemplate
  readonly judge: Judge
  readonly retriever: Retriever
  readonly policies: PolicyGate
  readonly logger: Logger
  readonly progress: (event: ProgressEvent) => void
  /** Emits once, when the run is to stop after the step it is at. */
  readonly stop$: Observable<unknown>
  /** Whether it has. */
  readonly stopped: () => boolean
}

/** Sampling settings of a section of the configuration, with the run's seed. */
export function samplingOptions(
  { config }: Pick<RunContext, 'config'>,
  section: 'validation' | 'rollout' | 'evaluation',
): SamplingOptions {
  const { temperature, topK, topP, maxNewTokens } = config[section]
  return { temperature, topK, topP, maxNewTokens, seed: config.training.seed }
}
