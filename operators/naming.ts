import { GraspError } from '../errors/grasp-error.ts'

/** Says of the death of the engine's process which records it was at: the engine was given tokens alone. */
export async function naming<T>(records: string, work: Promise<T>): Promise<T> {
  try {
    return await work
  } catch (error) {
    if (!(error instanceof GraspError) || error.code !== 'ENGINE_DIED') throw error
    throw new GraspError(error.code, `${records}: ${error.message}`, { cause: error })
  }
}
