/** Builds the heavy objects of a run from its configuration, and takes them down in the right order. */
import type { Engine } from '../engine/port.ts'
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
import { configIdentity, identityHash } from './config/identity.ts'
import type { RunContext } from './context.ts'
import { defined } from './defined.ts'
import type { RunHooks } from './events.ts'
import { openClaimedLog } from './run-log.ts'

export type Resources = Omit<RunContext, 'policies' | 'stop$' | 'stopped'> & AsyncDisposable

/** Opens everything a run needs; what was opened is closed again when a later part fails. */
export async function openResources(config: Config, hooks: Omit<RunHooks, 'signal'>): Promise<Resources> {
  const closers: (() => Promise<void>)[] = []
  const close = async () => {
    for (const closer of closers.splice(0).reverse()) await closer()
  }
  const closing = <T extends { close(): Promise<void> }>(resource: T): T => {
    closers.push(() => resource.close())
    return resource
  }
  try {
    const identity = await configIdentity(config)
    const prompt = await loadPrompt(config.prompt)
    const judge = await openJudge(config)
    const log = closing(await openClaimedLog(config, identity))
    const retriever = closing(await openRetriever(config))
    const engine = closing(await openEngine(config))
    const info = await engine.info()
    const { logger, progress } = hooks
    const configHash = identityHash(identity)
    return {
      ...{ config, configHash, log, engine, info, prompt, judge, retriever, logger, progress },
      [Symbol.asyncDispose]: close,
    }
  } catch (error) {
    await close()
    throw error
  }
}

export function openEngine({ model, rollout }: Config): Promise<Engine> {
  const { path, device, threads, tokensPerPass, sequencesPerPass } = model
  return openEngineProcess({
    path,
    device,
    threads,
    tokensPerPass,
    sequencesPerPass,
    keepPolicies: rollout.lag,
  })
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
