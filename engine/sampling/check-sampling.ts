import { GraspError } from '../../errors/grasp-error.ts'
import type { SamplingOptions } from '../port.ts'

/** @throws GraspError CONFIG_INVALID naming the option, what it is and what it may be. */
export function checkSampling(options: SamplingOptions): void {
  const { temperature, topK, topP, maxNewTokens, seed } = options
  demand('temperature', temperature, 'at least 0', temperature >= 0 && Number.isFinite(temperature))
  demand('topK', topK, 'a whole number from 0', Number.isInteger(topK) && topK >= 0)
  demand('topP', topP, 'above 0 and at most 1', topP > 0 && topP <= 1)
  demand(
    'maxNewTokens',
    maxNewTokens,
    'a whole number from 1',
    Number.isInteger(maxNewTokens) && maxNewTokens >= 1,
  )
  demand('seed', seed, 'a whole number', Number.isSafeInteger(seed))
}

function demand(name: string, value: number, expected: string, holds: boolean): void {
  if (!holds) throw new GraspError('CONFIG_INVALID', `sampling: ${name} is ${value}, expected ${expected}`)
}
