import { GraspError } from '../errors/grasp-error.ts'

/** For positions that cannot be set under those who read from them. @param workers in words */
export function groupActive(group: string, workers: readonly string[]): GraspError {
  return new GraspError(
    'GROUP_ACTIVE',
    `group ${group} is at work (${workers.join(', ')}); stop it first, then set its positions`,
  )
}
