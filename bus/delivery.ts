import { describeError, GraspError } from '../errors/grasp-error.ts'
import type { Topic } from '../schemas/types.ts'
import type { Codec } from './codec.ts'
import type { Delivery, Envelope } from './port.ts'

/** Decodes a record; one that cannot be decoded carries the error instead of a value. */
export function toDelivery<T extends Topic>(codec: Codec, envelope: Envelope<T>): Delivery<T> {
  try {
    return { ...envelope, value: codec.decode(envelope.topic, envelope.payload) }
  } catch (cause) {
    const error =
      cause instanceof GraspError
        ? cause
        : new GraspError(
            'RECORD_UNDECODABLE',
            `damaged record of ${envelope.topic}: ${describeError(cause)}`,
            { cause },
          )
    return { ...envelope, error }
  }
}
