/** The random numbers of one response. */
import { createHash } from 'node:crypto'
import { type Block, philox4x32 } from './philox.ts'

export interface StreamName {
  /** The run's seed, an integer. */
  readonly seed: number
  /** Names the response, for example by its instance. */
  readonly key: string
  /** The policy version, or `teacher`. */
  readonly policy: number | 'teacher'
  /** Which of several responses of that name; 0 by default. */
  readonly sample?: number
}

/** Maps a token's index to a uniform number in [0, 1) with 53 random bits. */
export type RandomStream = (tokenIndex: number) => number

/** The same name gives the same numbers, whatever else is drawn. */
export function randomStream({ seed, key, policy, sample = 0 }: StreamName): RandomStream {
  const digest = createHash('sha256')
    .update(JSON.stringify(sample === 0 ? [seed, key, policy] : [seed, key, policy, sample]))
    .digest()
  const philoxKey = [digest.readUInt32LE(0), digest.readUInt32LE(4)] as const
  const streamLow = digest.readUInt32LE(8)
  const streamHigh = digest.readUInt32LE(12)
  return tokenIndex => {
    const counter: Block = [tokenIndex, 0, streamLow, streamHigh]
    const [first, second] = philox4x32(counter, philoxKey)
    return ((first >>> 5) * 0x4000000 + (second >>> 6)) / 0x20000000000000
  }
}
