/** Dead letters: what could not be processed, as it was, so that it can be looked at and published again. */
import { describeError, GraspError } from '../errors/grasp-error.ts'
import { type Envelope, type Output, output } from './port.ts'

export interface Failure {
  readonly stage: string
  readonly error: unknown
  /** How often the stage tried; 1 unless told. */
  readonly attempts?: number
}

/** The dead letter of a record of the log; its payload is the encoded record with its schema fingerprint. */
export function deadLetter(source: Envelope, failure: Failure): Output<'deadletters'> {
  return letter(source, source.payload, failure)
}

/** The dead letter of a data item that never became a record; its payload is the item as JSON. */
export function deadLetterOfItem(key: string, item: unknown, failure: Failure): Output<'deadletters'> {
  const json = JSON.stringify(item) ?? 'null'
  return letter({ topic: '', partition: 0, offset: 0, key }, new TextEncoder().encode(json), failure)
}

function letter(
  source: { topic: string; partition: number; offset: number; key: string },
  payload: Uint8Array,
  { stage, error, attempts = 1 }: Failure,
): Output<'deadletters'> {
  const { topic, partition, offset, key } = source
  const code = error instanceof GraspError ? error.code : 'RECORD_INVALID'
  const message = describeError(error)
  const value = { stage, topic, partition, offset, key, code, message, attempts, payload }
  return output('deadletters', key, value) as Output<'deadletters'>
}
