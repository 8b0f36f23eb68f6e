/** The engine in a process of its own: the pipeline's thread stays free, and a native crash does not take it along. */
import { GraspError } from '../../errors/grasp-error.ts'
import type {
  Accumulated,
  Engine,
  EngineOptions,
  ExportOptions,
  Generation,
  Message,
  ModelInfo,
  PolicyReference,
  Prompt,
  SamplingOptions,
  Scored,
  ScoreItem,
  ScoreOptions,
  TrainItem,
  Updated,
  UpdateOptions,
} from '../port.ts'
import { type ChildOptions, EngineChild } from './child.ts'
import type { Method } from './protocol.ts'

/** Big models on slow machines take minutes for one graph. */
const HANG_SECONDS = 900

export interface ProcessOptions extends Partial<ChildOptions> {
  /** Breaks off the loading of the model. */
  readonly signal?: AbortSignal
}

/**
 * Starts the process and loads the model.
 * @throws GraspError MODEL_INVALID, MODEL_UNSUPPORTED as openLocalEngine; ENGINE_FAILED when the process cannot work;
 * ENGINE_DIED, as every later call, when it ended otherwise, was killed, or gave no sign of life; INTERRUPTED by the
 * signal.
 */
export async function openEngineProcess(
  options: EngineOptions,
  { hangSeconds = HANG_SECONDS, signal }: ProcessOptions = {},
): Promise<Engine> {
  const child = new EngineChild({ hangSeconds })
  const stop = () =>
    child.kill(new GraspError('INTERRUPTED', 'stopped while the model was loaded; nothing is lost'))
  if (signal?.aborted) stop()
  signal?.addEventListener('abort', stop)
  try {
    await child.ask({ open: options })
  } catch (error) {
    await child.end()
    throw error
  } finally {
    signal?.removeEventListener('abort', stop)
  }
  return new EngineProxy(child)
}

/** What `interrupt` is about. */
const INTERRUPTIBLE: ReadonlySet<Method> = new Set(['generate', 'score'])

class EngineProxy implements Engine {
  readonly #child: EngineChild
  #closing: Promise<void> | undefined

  constructor(child: EngineChild) {
    this.#child = child
  }

  info(): Promise<ModelInfo> {
    return this.#call('info')
  }

  encodeChat(messages: readonly Message[]): Promise<Int32Array> {
    return this.#call('encodeChat', messages)
  }

  decode(ids: Int32Array): Promise<string> {
    return this.#call('decode', ids)
  }

  generate(
    policy: PolicyReference,
    prompts: readonly Prompt[],
    options: SamplingOptions,
  ): Promise<Generation[]> {
    return this.#call('generate', policy, prompts, options)
  }

  score(items: readonly ScoreItem[], options: ScoreOptions): Promise<Scored[]> {
    return this.#call('score', items, options)
  }

  accumulate(items: readonly TrainItem[]): Promise<Accumulated> {
    return this.#call('accumulate', items)
  }

  discard(): Promise<void> {
    return this.#call('discard')
  }

  update(options: UpdateOptions): Promise<Updated> {
    return this.#call('update', options)
  }

  policyVersion(): Promise<number> {
    return this.#call('policyVersion')
  }

  weightsHash(policy: PolicyReference): Promise<string> {
    return this.#call('weightsHash', policy)
  }

  saveCheckpoint(path: string, state: unknown): Promise<void> {
    return this.#call('saveCheckpoint', path, state)
  }

  loadCheckpoint(path: string): Promise<unknown> {
    return this.#call('loadCheckpoint', path)
  }

  loadPolicy(version: number, path: string, weightsHash: string): Promise<void> {
    return this.#call('loadPolicy', version, path, weightsHash)
  }

  exportPolicy(
    policy: PolicyReference,
    path: string,
    dtype: 'f32' | 'bf16',
    options?: ExportOptions,
  ): Promise<void> {
    return this.#call('exportPolicy', policy, path, dtype, options)
  }

  /** Those calls fail at once; the process notices between two of its passes. */
  interrupt(): Promise<void> {
    this.#child.abandon(INTERRUPTIBLE, new GraspError('INTERRUPTED', 'sampling and scoring were interrupted'))
    return this.#call('interrupt')
  }

  /**
   * Waits for the calls before it, unless they were interrupted; the process is gone when it returns, whatever happens.
   */
  close(): Promise<void> {
    this.#closing ??= this.#close()
    return this.#closing
  }

  async #close(): Promise<void> {
    try {
      if (this.#child.isWastingTime) this.#child.kill(new GraspError('ENGINE_FAILED', 'the engine is closed'))
      else await this.#call('close')
    } finally {
      await this.#child.end()
    }
  }

  #call<M extends Method>(method: M, ...args: Parameters<Engine[M]>): ReturnType<Engine[M]> {
    return this.#child.ask({ method, args }) as ReturnType<Engine[M]>
  }
}
