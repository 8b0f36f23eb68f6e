/** Reading on in a reader's partitions: in which of them, how much of each, and the answers into their lanes. */
import type { GraspError } from '../../errors/grasp-error.ts'
import type { Topic } from '../../schemas/types.ts'
import type { Client, Cluster } from './client.ts'
import type { ClusterLog } from './cluster-log.ts'
import { prepare } from './delivery.ts'
import { goneRecords, typeOf } from './faults.ts'
import { fetchPartitions } from './fetch.ts'
import type { Lane } from './lane.ts'
import type { KafkaCodec } from './options.ts'
import { retrying } from './retrying.ts'
import { Undecided } from './undecided.ts'

/** What is asked for at once, and less where the credits are less. */
const FETCH_BYTES = 8 << 20
const LEAST_FETCH_BYTES = 64 << 10
const FETCH_WAIT_MS = 250

export interface FetchingParts {
  readonly client: Client
  readonly log: ClusterLog
  readonly codec: KafkaCodec
  readonly cluster: Cluster
  readonly topic: Topic
  readonly group: string
  readonly lanes: ReadonlyMap<number, Lane>
  /** Of the reader's credits: more is not of use at once. */
  readonly bytes: number
  /** Where reading ends in a partition. */
  readonly stopOf: (partition: number) => number
  /** Where to begin was said by whoever reads, and is not the group's to say. */
  readonly given: boolean
  /** Ends the waiting for brokers that are away. */
  readonly stopped: () => boolean
}

export class Fetching {
  readonly #parts: FetchingParts
  readonly #bytes: number
  readonly #undecided: Undecided

  constructor(parts: FetchingParts) {
    this.#parts = parts
    this.#bytes = Math.max(LEAST_FETCH_BYTES, Math.min(FETCH_BYTES, parts.bytes))
    const { away, transaction } = parts.client.timeouts
    this.#undecided = new Undecided(parts.log.names.topic(parts.topic), Math.max(away, 2 * transaction))
  }

  /**
   * Where to read on, by partition: in none of which enough is at hand. Each has a share of its own, since what waits of
   * one may be of no use until a record of another comes. Who has least comes first, since an answer may be full before
   * it comes to the last.
   */
  wanted(): Map<number, number> {
    const { lanes, stopOf } = this.#parts
    const enough = this.#share() / 2
    const own = [...lanes].filter(
      ([p, { position, queuedBytes }]) => position < stopOf(p) && queuedBytes < enough,
    )
    own.sort(([, a], [, b]) => a.queuedBytes - b.queuedBytes)
    return new Map(own.map(([p, { position }]) => [p, position]))
  }

  /**
   * Reads on at these positions.
   * Errors: LOG_MISMATCH where the records are gone, LOG_UNAVAILABLE where they stay undecided.
   */
  async fetch(positions: ReadonlyMap<number, number>): Promise<void> {
    const { log, codec, cluster, topic, lanes, stopOf, stopped } = this.#parts
    // While anything is at hand, what can be done with it must not wait for more.
    const waiting = [...lanes.values()].every(lane => lane.queued === 0)
    const limits = {
      maxBytes: this.#bytes,
      partitionBytes: Math.floor(this.#share()),
      maxWait: waiting ? FETCH_WAIT_MS : 0,
    }
    const name = log.names.topic(topic)
    const fetched = await retrying(cluster, () => fetchPartitions(cluster, name, positions, limits), {
      stopped,
    }).catch(async cause => {
      throw (await this.#gone(cause)) ?? cause
    })
    for (const [p, answer] of fetched) {
      this.#undecided.look(p, answer)
      const { records, next } = answer
      await prepare(codec, topic, records, () => log.meta.refresh())
      const lane = lanes.get(p)
      // Lost or set anew while the answer was on its way.
      if (!lane || lane.position !== positions.get(p)) continue
      const stop = stopOf(p)
      lane.fetched(
        stop === Number.POSITIVE_INFINITY ? records : records.filter(({ offset }) => Number(offset) < stop),
        next,
      )
    }
  }

  /** What is asked for of one partition, in bytes. */
  #share(): number {
    return Math.max(LEAST_FETCH_BYTES, this.#bytes / Math.max(1, this.#parts.lanes.size))
  }

  /** Where records were removed that were to be read next. */
  async #gone(cause: unknown): Promise<GraspError | undefined> {
    if (typeOf(cause) !== 'OFFSET_OUT_OF_RANGE') return undefined
    const { log, topic, group, lanes, given } = this.#parts
    const beginnings = await log.beginnings(topic)
    for (const [partition, { position: offset }] of lanes) {
      const beginning = beginnings.get(partition)!
      if (offset < beginning) return goneRecords(group, { topic, partition, offset }, beginning, given)
    }
    return undefined
  }
}
