/**
 * How much one message between processes may hold. Node's channel keeps a message's length as a signed number of 32
 * bits, and a longer one ends the process that reads it.
 */
import { GraspError } from '../../errors/grasp-error.ts'
import { size } from '../devices/size.ts'

/** Less what is around the arrays. */
const MOST_BYTES = 2 ** 31 - 2 ** 20

/**
 * @param what names the message in the error.
 * @throws GraspError ENGINE_FAILED when it holds too much.
 */
export function checkSize(what: string, message: unknown): void {
  const bytes = bytesOf(message)
  if (bytes <= MOST_BYTES) return
  throw new GraspError(
    'ENGINE_FAILED',
    `${what} holds ${size(bytes)}, and processes can hand over 2 GiB at once. Of whole ` +
      'distributions (scoring.encoding: dense) take factored or topk, or a lower training.batch and training.microbatch.',
  )
}

/** Of the arrays of numbers, which are all that can be large. */
function bytesOf(value: unknown): number {
  if (ArrayBuffer.isView(value)) return value.byteLength
  if (typeof value !== 'object' || value === null) return 0
  return Object.values(value).reduce<number>((sum, part) => sum + bytesOf(part), 0)
}
