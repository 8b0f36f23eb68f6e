import { GraspError } from '../errors/grasp-error.ts'

/**
 * @param what names the ids in the error.
 * @throws GraspError RECORD_INVALID when there are none, or one is outside the vocabulary.
 */
export function checkIds(what: string, ids: Int32Array, vocabularySize: number): void {
  if (ids.length === 0) throw new GraspError('RECORD_INVALID', `${what} has no tokens`)
  const wrong = ids.find(id => id < 0 || id >= vocabularySize)
  if (wrong !== undefined) {
    throw new GraspError(
      'RECORD_INVALID',
      `${what} has the token id ${wrong}; the model's vocabulary has ${vocabularySize} tokens. ` +
        'Was it made with another tokenizer?',
    )
  }
}
