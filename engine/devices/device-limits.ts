/**
 * How large a buffer of the WebGPU device may be, found out without filling it: a device refuses what is too large
 * before it allocates anything, and the refusal states its limit. onnxruntime binds a large tensor in pieces, and
 * refuses one with more pieces than a shader takes, which gives the size of a piece.
 */
import { freemem } from 'node:os'
import { describeError } from '../../errors/grasp-error.ts'
import { bufferSessions } from './trial-graphs.ts'

export interface DeviceLimits {
  /** Bytes; absent where not even the largest that was asked for was refused. */
  readonly bufferBytes?: number
  /** A buffer of this many bytes was made and filled. */
  readonly madeBytes?: number
  /** Bytes that a shader sees of a buffer at once; absent where it is so many that no refusal shows it. */
  readonly bindingBytes?: number
  /** Buffers that a shader may use. */
  readonly bindings?: number
}

/** What a refusal says of the limits. */
export type Refusal =
  | { readonly bufferBytes: number }
  /** Pieces that the buffer would have been bound in. */
  | { readonly pieces: number; readonly bindings: number }

/** undefined: refused for another reason, such as memory that ran out. */
export function readRefusal(message: string): Refusal | undefined {
  const size = /exceeds the max buffer size limit \((\d+)\)/.exec(message)
  if (size) return { bufferBytes: Number(size[1]) }
  const pieces = /Too many storage buffers in shader\. Current: (\d+), Max is (\d+)/.exec(message)
  // One buffer is the input.
  return pieces ? { pieces: Number(pieces[1]) - 1, bindings: Number(pieces[2]) } : undefined
}

/** A buffer's size, in bytes: what the device says to it, or `made`. */
export type Ask = (bytes: number) => Promise<Refusal | 'made' | undefined>

/** No larger tensor of f32 has elements that 32 bits number. */
const LARGEST = 2 ** 34
const SMALLEST = 2 ** 27
/** Sizes of pieces are told apart to this many bytes. */
const GRAIN = 2 ** 12

export async function measureLimits(): Promise<DeviceLimits> {
  const { expand, greatest } = await bufferSessions()
  return limitsBy(async bytes => {
    try {
      const y = await expand(bytes / 4)
      await greatest(y)
      y.dispose()
      return 'made'
    } catch (error) {
      return readRefusal(describeError(error))
    }
  }, freemem())
}

/** @param free bytes of the machine's memory, which the device may share: no more than half of it is asked for first */
export async function limitsBy(ask: Ask, free: number): Promise<DeviceLimits> {
  const first = Math.min(LARGEST, Math.max(SMALLEST, 2 ** Math.floor(Math.log2(free / 2))))
  for (let bytes = first; bytes >= SMALLEST; bytes /= 2) {
    const answer = await ask(bytes)
    if (answer === 'made') return { madeBytes: bytes }
    if (answer && 'bufferBytes' in answer) {
      const { bufferBytes } = answer
      return { bufferBytes, ...(bufferBytes < LARGEST && (await bindingLimits(ask))) }
    }
  }
  return {}
}

/** Nothing is made: what is asked for is larger than any buffer. */
async function bindingLimits(ask: Ask): Promise<DeviceLimits> {
  const piecesOf = async (bytes: number) => {
    const answer = await ask(bytes)
    return answer !== undefined && answer !== 'made' && 'pieces' in answer ? answer : undefined
  }
  const most = await piecesOf(LARGEST)
  if (most === undefined || most.pieces <= most.bindings) return {}
  // The largest size with a piece less is that many whole pieces.
  const wanted = most.pieces - 1
  let [low, high] = [(LARGEST / most.pieces) * wanted, LARGEST]
  if ((await piecesOf(low))?.pieces !== wanted) return { bindings: most.bindings }
  while (high - low > GRAIN) {
    const middle = low + Math.floor((high - low) / 2 / GRAIN) * GRAIN
    if ((await piecesOf(middle))?.pieces === wanted) low = middle
    else high = middle
  }
  return { bindingBytes: Math.floor(low / wanted), bindings: most.bindings }
}
