/** What stages are given. A stage asks for no more than it needs, so that a process of one stage opens no more. */
import type { Logger } from 'pino'
import type { Observable } from 'rxjs'
import type { Log } from '../bus/port.ts'
import type { Engine, ModelInfo, SamplingOptions } from '../engine/port.ts'
import type { Judge } from '../judges/port.ts'
import type { PolicySource } from '../operators/policy-gate.ts'
import type { PromptTemplate } from '../prompts/prompt.ts'
import type { Retriever } from '../retrievers/port.ts'
import type { Config } from './config/config.ts'
import type { ProgressEvent } from './events.ts'

export interface StageContext {
  readonly config: Config
  readonly configHash: string
  readonly log: Log
  readonly logger: Logger
  readonly progress: (event: ProgressEvent) => void
  /** Emits once, when the run is to stop after the step it is at. */
  readonly stop$: Observable<unknown>
  /** Whether it has. */
  readonly stopped: () => boolean
}

export interface RetrievalContext extends StageContext {
  readonly retriever: Retriever
}

export interface ModelContext extends StageContext {
  readonly engine: Engine
  readonly info: ModelInfo
  readonly prompt: PromptTemplate
}

/** For stages that have the student answer. */
export interface PolicyContext extends ModelContext {
  readonly policies: PolicySource
}

export interface JudgedContext extends ModelContext {
  readonly judge: Judge
}

/** Sampling settings of a section of the configuration, with the run's seed. */
export function samplingOptions(
  { config }: Pick<StageContext, 'config'>,
  section: 'validation' | 'rollout' | 'evaluation',
): SamplingOptions {
  const { temperature, topK, topP, minP, maxNewTokens, stop } = config[section]
  return { temperature, topK, topP, minP, maxNewTokens, stop, seed: config.training.seed }
}
