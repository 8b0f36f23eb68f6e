/** The end of a subscription: where it is, and whether a reader and the others of its group have come to it. */
import type { Topic } from '../../schemas/types.ts'
import type { ReadOptions } from '../port.ts'
import type { ClusterLog } from './cluster-log.ts'
import type { Seat } from './seat.ts'

/** How often a member at the end looks whether the topic was sealed, and the others are done. */
export const LOOK_MS = 100

export class Completion {
  readonly #log: ClusterLog
  readonly #topic: Topic
  readonly #options: Pick<ReadOptions, 'group' | 'until'>
  readonly #seat: Seat
  #ends: readonly number[] | undefined
  #lookedAt = 0

  constructor(log: ClusterLog, topic: Topic, options: Pick<ReadOptions, 'group' | 'until'>, seat: Seat) {
    this.#log = log
    this.#topic = topic
    this.#options = options
    this.#seat = seat
  }

  /** Before anything else: looks where the topic ends, and gives the ends, where these are the end of the subscription. */
  async find(): Promise<readonly number[] | undefined> {
    if (this.#options.until === 'end') this.#ends = await this.#log.ends(this.#topic)
    return this.#ends
  }

  /** Where reading ends in a partition. */
  stopOf(partition: number): number {
    return this.#options.until === 'end' ? this.#ends![partition]! : Number.POSITIVE_INFINITY
  }

  /** Whether everything there will be was handed out, here and by the others. */
  async isReached(): Promise<boolean> {
    const { group, until } = this.#options
    const { lanes } = this.#seat
    if (until === 'never' || [...lanes.values()].some(lane => lane.queued > 0)) return false
    const partitions = this.#log.partitions(this.#topic)
    // Asking the cluster takes its time, and the loop comes by here often.
    if ((until === 'sealed' || lanes.size < partitions) && !this.#isTimeToLook()) return false
    const stops = until === 'end' ? this.#ends! : await this.#sealedEnds()
    if (!stops || !this.#seat.steady) return false
    for (const [p, { position }] of lanes) if (position < stops[p]!) return false
    if (lanes.size === partitions) return true
    await this.#seat.tidy()
    const positions = await this.#log.positions(group, this.#topic)
    for (const [p, stop] of stops.entries()) {
      const { offset } = positions[p]!
      if (lanes.has(p) || offset >= stop) continue
      if (!(await this.#log.isEmpty(this.#topic, p, offset, stop))) return false
    }
    return true
  }

  async #sealedEnds(): Promise<readonly number[] | undefined> {
    await this.#log.meta.refresh()
    return this.#log.sealedEnds(this.#topic)
  }

  #isTimeToLook(): boolean {
    const now = Date.now()
    if (now - this.#lookedAt < LOOK_MS) return false
    this.#lookedAt = now
    return true
  }
}
