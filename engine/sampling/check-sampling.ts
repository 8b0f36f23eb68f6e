import { GraspError } from '../../errors/grasp-error.ts'
import type { Prompt, SamplingOptions } from '../port.ts'

/** @throws GraspError CONFIG_INVALID naming the option, what it is and what it may be. */
export function checkSampling(options: SamplingOptions): void {
  const { temperature, topK, topP, minP, maxNewTokens, stop, seed } = options
  demand('temperature', temperature, 'at least 0', temperature >= 0 && Number.isFinite(temperature))
  demand('topK', topK, 'a whole number from 0', Number.isInteger(topK) && topK >= 0)
  demand('topP', topP, 'above 0 and at most 1', topP > 0 && topP <= 1)
  demand('minP', minP, 'at least 0 and at most 1', minP >= 0 && minP <= 1)
  demand(
    'maxNewTokens',
    maxNewTokens,
    'a whole number from 1',
    Number.isInteger(maxNewTokens) && maxNewTokens >= 1,
  )
  demand('stop', stop, 'a list of strings', Array.isArray(stop))
  for (const [index, text] of stop.entries()) {
    const holds = typeof text === 'string' && text.length > 0 && isText(text)
    demand(`stop[${index}]`, text, 'a text of at least one character', holds)
  }
  demand('seed', seed, 'a whole number', Number.isSafeInteger(seed))
}

/** @throws GraspError CONFIG_INVALID where it is no number of samples. */
export function checkSamples({ key, samples = 1 }: Prompt): void {
  demand(`samples of ${key}`, samples, 'a whole number from 1', Number.isInteger(samples) && samples >= 1)
}

/**
 * Halves of surrogate pairs are in no text, and U+FFFD is what stands for the bytes of a character that is not
 * complete yet: a response would end in the middle of one.
 */
function isText(text: string): boolean {
  return !/\p{Surrogate}|\uFFFD/u.test(text)
}

function demand(name: string, value: unknown, expected: string, holds: boolean): void {
  if (holds) return
  const shown = typeof value === 'number' ? String(value) : (JSON.stringify(value) ?? String(value))
  throw new GraspError('CONFIG_INVALID', `sampling: ${name} is ${shown}, expected ${expected}`)
}
