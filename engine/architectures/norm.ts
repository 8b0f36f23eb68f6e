/** The models' norm. */
import { scalar } from '../graph/input.ts'
import { add } from '../graph/operations/add.ts'
import { rmsNorm } from '../graph/operations/rms-norm.ts'
import type { Value } from '../graph/value.ts'
import type { ModelConfig } from './config.ts'

/**
 * Root-mean-square norm over the last axis. An offset is added to the weight here, so that what is trained,
 * decayed and saved is the weight as Hugging Face has it.
 */
export function norm({ normEpsilon, normOffset }: ModelConfig, x: Value, weight: Value): Value {
  return rmsNorm(x, normOffset === undefined ? weight : add(weight, scalar(normOffset)), normEpsilon)
}
