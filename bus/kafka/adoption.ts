/**
 * Taking partitions over from whoever had them: what the last owner left open under their transactional ids is ended
 * first, then the group's positions say where to go on.
 */
import type { Topic } from '../../schemas/types.ts'
import type { ClusterLog, CommittedPosition } from './cluster-log.ts'
import { forgottenPosition, goneRecords } from './faults.ts'
import { Lane } from './lane.ts'
import type { Transactions } from './transactions.ts'

export interface AdoptionParts {
  readonly log: ClusterLog
  readonly transactions: Transactions
  readonly topic: Topic
  readonly group: string
  /** Where to begin instead of at the group's positions, by partition. */
  readonly from: ReadonlyMap<number, number> | undefined
  /** Stores where lanes are; false where the group is just being shared out anew. */
  readonly store: (lanes: ReadonlyMap<number, Lane>) => Promise<boolean>
  /** Notes that the group has positions in these partitions. */
  readonly began: (partitions: readonly number[]) => Promise<void>
}

export class Adoption {
  readonly #parts: AdoptionParts

  constructor(parts: AdoptionParts) {
    this.#parts = parts
  }

  /**
   * Takes partitions over and gives lanes that begin where to go on: none for those whose lane knows that already.
   * @param lanes those that there are
   * Errors: LOG_MISMATCH where the position was forgotten, or the records are gone.
   */
  async adopt(partitions: readonly number[], lanes: ReadonlyMap<number, Lane>): Promise<Map<number, Lane>> {
    if (partitions.length === 0) return new Map()
    const { log, transactions, group, topic, from } = this.#parts
    await Promise.all(
      partitions.map(p => transactions.fence(log.cluster, log.names.transactionalId(group, topic, p))),
    )
    const [positions, beginnings] = await Promise.all([
      log.stablePositions(group, topic),
      log.beginnings(topic),
    ])
    const moved = partitions.filter(p => lanes.get(p)?.committed !== positions[p]!.offset)
    const adopted = new Map(moved.map(p => [p, this.#laneAt(p, positions[p]!, beginnings.get(p)!)]))
    await this.#keep(new Map([...adopted].filter(([p]) => !positions[p]!.stored && !from?.has(p))))
    return adopted
  }

  /**
   * Stores where a group begins, and that it did: a cluster forgets the positions of a group that was away for
   * long (`offsets.retention.minutes`), and beginning once more would do everything twice.
   */
  async #keep(lanes: ReadonlyMap<number, Lane>): Promise<void> {
    if (lanes.size === 0) return
    const { log, group, topic, store, began } = this.#parts
    await log.meta.refresh()
    for (const p of lanes.keys()) {
      if (log.meta.hasBegun(group, topic, p)) throw forgottenPosition(group, topic, p)
    }
    if (await store(lanes)) await began([...lanes.keys()])
  }

  #laneAt(partition: number, { offset, stored, seen }: CommittedPosition, beginning: number): Lane {
    const { topic, group, from } = this.#parts
    const present = stored ? offset : beginning
    const start = from?.get(partition) ?? present
    if (start < beginning)
      throw goneRecords(group, { topic, partition, offset: start }, beginning, from?.has(partition) ?? false)
    return new Lane(start, start === offset ? seen : {}, from?.has(partition) && !stored ? 0 : present)
  }
}
