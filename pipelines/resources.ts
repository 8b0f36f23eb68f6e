/** Builds the heavy objects of a run from its configuration, each when it is first asked for, and takes them down. */
import { ReplaySubject } from 'rxjs'
import type { Engine, LoraOptions } from '../engine/port.ts'
import { openEngineProcess } from '../engine/process/proxy.ts'
import { createChatJudge } from '../judges/chat.ts'
import { JUDGE_PROMPT, loadJudgePrompt } from '../judges/chat-prompt.ts'
import { openLexicalJudge } from '../judges/lexical.ts'
import type { Judge } from '../judges/port.ts'
import { loadPrompt } from '../prompts/prompt.ts'
import { createBm25Retriever } from '../retrievers/bm25.ts'
import { loadDenseRetriever } from '../retrievers/dense.ts'
import type { Retriever } from '../retrievers/port.ts'
import type { Config } from './config/config.ts'
import { identityHash } from './config/identity.ts'
import type { JudgedContext, ModelContext, RetrievalContext, StageContext } from './context.ts'
import { defined } from './defined.ts'
import type { RunHooks } from './events.ts'
import { checkResponseRoom } from './response-room.ts'
import { claimModel, openClaimedLog } from './run-log.ts'

export class Resources implements AsyncDisposable {
  /** What every stage has: the log, claimed for this configuration. */
  readonly stage: StageContext
  readonly #signal: AbortSignal
  readonly #closers: (() => Promise<void>)[] = []
  #model: Promise<ModelContext> | undefined

  private constructor(stage: StageContext, signal: AbortSignal) {
    this.stage = stage
    this.#signal = signal
    this.#closers.push(() => stage.log.close())
  }

  static async open(config: Config, hooks: RunHooks): Promise<Resources> {
    const { signal, logger, progress, patience } = hooks
    const stopped = () => signal.aborted
    const { log, identity } = await openClaimedLog(config, { stopped, ...defined({ patience }) })
    const configHash = identityHash(identity)
    // A late subscriber hears of an early signal.
    const stop$ = new ReplaySubject<void>(1)
    const stop = () => stop$.next()
    if (signal.aborted) stop()
    signal.addEventListener('abort', stop, { once: true })
    const stage = { config, configHash, log, logger, progress, stop$, stopped }
    const resources = new Resources(stage, signal)
    resources.onClose(async () => signal.removeEventListener('abort', stop))
    return resources
  }

  /** Closed with the rest, before what was opened before it. */
  onClose(close: () => Promise<void>): void {
    this.#closers.push(close)
  }

  async retrieval(): Promise<RetrievalContext> {
    const retriever = await openRetriever(this.stage.config)
    this.#closers.push(() => retriever.close())
    return { ...this.stage, retriever }
  }

  model(): Promise<ModelContext> {
    this.#model ??= this.#openModel()
    return this.#model
  }

  async judged(): Promise<JudgedContext> {
    const judge = await openJudge(this.stage.config)
    return { ...(await this.model()), judge }
  }

  async #openModel(): Promise<ModelContext> {
    const { config } = this.stage
    const prompt = await loadPrompt(config.prompt)
    const engine = await openEngine(config, this.#signal)
    this.#closers.push(() => engine.close())
    // What stages and evaluation have it compute then is abandoned.
    const stopping = this.stage.stop$.subscribe(() => {
      // One that has died computes nothing, and says so to those who wait for it.
      engine.interrupt().catch(() => {})
    })
    this.#closers.push(async () => stopping.unsubscribe())
    const info = await engine.info()
    checkResponseRoom(config, info.contextLength)
    await claimModel(this.stage.log, config, info)
    return { ...this.stage, engine, info, prompt }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    // Newest first: what reads from the log is closed before the log, also where a close fails (a dead engine's).
    const failures: unknown[] = []
    for (const close of this.#closers.splice(0).reverse()) await close().catch(error => failures.push(error))
    if (failures.length > 0) throw failures[0]
  }
}

/** @param signal breaks off the loading, which then ends with INTERRUPTED */
export function openEngine(
  { model, rollout, training, engine }: Config,
  signal?: AbortSignal,
): Promise<Engine> {
  const lora = loraOptions(training)
  const { path, device, threads, tokensPerPass, sequencesPerPass } = model
  const options = {
    path,
    device,
    threads,
    tokensPerPass,
    sequencesPerPass,
    keepPolicies: rollout.lag,
    optimiserState: training.optimiserState,
    ...(lora && { lora }),
  }
  return openEngineProcess(options, { hangSeconds: engine.hangSeconds, ...(signal && { signal }) })
}

/** Undefined where all parameters are trained. */
export function loraOptions({ lora, seed }: Config['training']): LoraOptions | undefined {
  const { dropout: _, ...options } = lora
  return options.rank === 0 ? undefined : { ...options, seed }
}

export async function openJudge({ judge }: Config): Promise<Judge> {
  if (judge.kind === 'lexical') return openLexicalJudge(defined(judge))
  const { kind: _, prompt = JUDGE_PROMPT, ...options } = judge
  return createChatJudge({ ...defined(options), prompt: await loadJudgePrompt(prompt) })
}

export async function openRetriever({ retrieval }: Config): Promise<Retriever> {
  if (retrieval.kind === 'bm25') return createBm25Retriever()
  const { model: path, ...options } = retrieval.dense!
  return loadDenseRetriever({ ...defined(options), path })
}
