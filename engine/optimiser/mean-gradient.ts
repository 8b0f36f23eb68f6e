/** From sums over responses to the clipped mean over them. */
import { GraspError } from '../../errors/grasp-error.ts'
import type { UpdateOptions } from '../port.ts'

/** @throws GraspError ENGINE_FAILED where nothing was summed */
export function summed<T>(sums: T | undefined, { responses }: UpdateOptions): T {
  if (sums && responses > 0) return sums
  throw new GraspError('ENGINE_FAILED', 'update without accumulated responses; accumulate some first')
}

/**
 * The norm of the mean over responses, before clipping, and the factor of the sums for mean and clipping.
 * @param norm of the sums
 * @throws GraspError ENGINE_FAILED where it is not finite
 */
export function clippedMean(
  norm: number,
  { responses, clip }: UpdateOptions,
): { scale: number; gradientNorm: number } {
  const gradientNorm = norm / responses
  if (!Number.isFinite(gradientNorm)) {
    throw new GraspError('ENGINE_FAILED', `the gradient's norm is ${gradientNorm}; lower the learning rate`)
  }
  // As torch.nn.utils.clip_grad_norm_.
  const clipping = Math.min(1, clip / (gradientNorm + 1e-6))
  return { scale: clipping / responses, gradientNorm }
}
