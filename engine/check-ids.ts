/** Whether token ids are ones that a model can be given. */
import { GraspError } from '../errors/grasp-error.ts'

/** @throws GraspError RECORD_INVALID as `idsProblem` says. */
export function checkIds(what: string, ids: Int32Array, vocabularySize: number): void {
  const problem = idsProblem(what, ids, vocabularySize)
  if (problem) throw problem
}

/**
 * @param what names the ids in the error.
 * @returns RECORD_INVALID when there are none, or one is outside the vocabulary; undefined when nothing is wrong.
 */
export function idsProblem(
  what: string,
  ids: Int32Array | readonly number[],
  vocabularySize: number,
): GraspError | undefined {
  if (ids.length === 0) return new GraspError('RECORD_INVALID', `${what} has no tokens`)
  const wrong = ids.find(id => id < 0 || id >= vocabularySize)
  if (wrong === undefined) return undefined
  return new GraspError(
    'RECORD_INVALID',
    `${what} has the token id ${wrong}; the model's vocabulary has ${vocabularySize} tokens. ` +
      'Was it made with another tokenizer?',
  )
}
