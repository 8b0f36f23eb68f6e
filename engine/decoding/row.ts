/** A sequence that is decoded, wherever that happens. */
import { GraspError } from '../../errors/grasp-error.ts'
import type { ModelConfig } from '../architectures/config.ts'
import type { Generation, SamplingOptions } from '../port.ts'
import type { RandomStream } from '../sampling/random-stream.ts'
import type { Sampler } from '../sampling/sampler.ts'
import type { StopWatch } from '../sampling/stop-strings.ts'

export interface Request {
  /** Names the prompt in errors. */
  readonly key: string
  readonly prompt: Int32Array
  readonly random: RandomStream
  /** Told each token; true ends the response after it. */
  readonly ends?: StopWatch
}

/** A sequence being decoded. */
export interface Row {
  readonly index: number
  readonly request: Request
  /** The prompt, then the response. */
  readonly sequence: number[]
  readonly logp: number[]
}

/** @throws GraspError PROMPT_TOO_LONG when the prompt with maxNewTokens exceeds the context, PROMPT_INVALID when it is empty. */
export function checkRequest(config: ModelConfig, { key, prompt }: Request, maxNewTokens: number): void {
  if (prompt.length === 0) throw new GraspError('PROMPT_INVALID', `the prompt of ${key} has no tokens`)
  if (prompt.length + maxNewTokens > config.contextLength) {
    throw new GraspError(
      'PROMPT_TOO_LONG',
      `the prompt of ${key} has ${prompt.length} tokens; with ${maxNewTokens} new ones it exceeds the model's ` +
        `context of ${config.contextLength}. Use fewer or shorter profile entries, or fewer new tokens.`,
    )
  }
}

/** Draws the row's next token; gives the generation when it is the last one. */
export function drawToken(
  sampler: Sampler,
  stop: ReadonlySet<number>,
  row: Row,
  logits: Float32Array,
  sampling: SamplingOptions,
): Generation | undefined {
  const { token, logp } = sampler.draw(logits, sampling, row.request.random(row.logp.length))
  row.sequence.push(token)
  row.logp.push(logp)
  const stopped = stop.has(token) || row.request.ends?.(token) === true
  if (!stopped && row.logp.length < sampling.maxNewTokens) return undefined
  return {
    ids: Int32Array.from(row.sequence.slice(row.request.prompt.length)),
    finish: stopped ? 'stop' : 'length',
    logp: Float32Array.from(row.logp),
  }
}
