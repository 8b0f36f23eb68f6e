/** Git LFS leaves a small text in the place of a file whose contents were not fetched. */
import { GraspError } from '../../errors/grasp-error.ts'

/** How such a text begins. */
export const LFS_POINTER = 'version https://git-lfs.github.com/spec/'

export function isPointer(path: string): GraspError {
  return new GraspError(
    'MODEL_INVALID',
    `${path} is a pointer of Git LFS, not the file itself: fetch it with \`git lfs pull\`, or the model with \`grasp pull\``,
  )
}
