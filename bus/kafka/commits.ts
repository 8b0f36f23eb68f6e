/**
 * A commit is one transaction, under the transactional id of the lowest input partition that it covers. A stage may
 * finish a batch over several partitions at once, and splitting that would not be atomic; so the other partitions
 * are guarded by the group: it takes their offsets only of a member of its present generation (`requests.ts`), and
 * who gets a partition next reads its position when no transaction is open that may still set it.
 */
import type { Offsets } from 'kafkajs'
import { GraspError } from '../../errors/grasp-error.ts'
import type { CommitRequest, Place, Position } from '../port.ts'
import { type ClusterLog, noSuchPosition } from './cluster-log.ts'
import { departed } from './faults.ts'
import { seenText } from './origin.ts'
import type { Preparation } from './preparation.ts'
import type { Reader } from './reader.ts'
import type { Readers } from './readers.ts'
import { type Member, NO_MEMBER } from './requests.ts'
import type { Turns } from './turns.ts'
import type { Writer } from './writer.ts'

export class Commits {
  readonly #log: ClusterLog
  readonly #preparation: Preparation
  readonly #writer: Writer
  readonly #readers: Readers
  readonly #turns: Turns

  /** `turns`: commits of a group come one after another. */
  constructor(log: ClusterLog, preparation: Preparation, writer: Writer, readers: Readers, turns: Turns) {
    this.#log = log
    this.#preparation = preparation
    this.#writer = writer
    this.#readers = readers
    this.#turns = turns
  }

  /** Errors: LOG_MISMATCH for a position beyond the log, PARTITION_LOST for one that another member works on. */
  commit(request: CommitRequest): Promise<Place[]> {
    const { group, positions } = request
    return this.#turns.take(group, async () => {
      const readers = this.#readers
        .of(group)
        .filter(reader => positions.some(({ topic }) => topic === reader.topic))
      const holds = await Promise.allSettled(readers.map(reader => reader.hold()))
      try {
        for (const hold of holds) if (hold.status === 'rejected') throw hold.reason
        return await this.#commit(request, readers)
      } finally {
        for (const [i, { status }] of holds.entries()) if (status === 'fulfilled') readers[i]!.free()
      }
    })
  }

  /** Errors: LOG_MISMATCH for a position beyond the log. */
  async checkRange(positions: readonly Position[]): Promise<void> {
    for (const topic of new Set(positions.map(position => position.topic))) {
      const ends = await this.#log.ends(topic)
      for (const { topic: own, partition, offset } of positions) {
        const valid = Number.isInteger(offset) && offset >= 0 && offset <= (ends[partition] ?? -1)
        if (own === topic && !valid) throw noSuchPosition(topic, partition, offset, ends[partition] ?? 0)
      }
    }
  }

  async #commit(request: CommitRequest, readers: readonly Reader[]): Promise<Place[]> {
    const { group, outputs, origins, positions, seal = [] } = request
    const { names } = this.#log
    const prepared = await this.#preparation.outputs(outputs, origins && { group, origins })
    await this.#checkPositions(group, positions, readers)
    const reached = positions.map(position => this.#reached(position, readers))
    const first = [...positions].sort((a, b) => a.partition - b.partition)[0]
    const places = await this.#writer.transactions.run({
      transactionalId: first
        ? names.transactionalId(group, first.topic, first.partition)
        : this.#writer.ownId,
      outputs: prepared,
      ...(first && {
        consumed: {
          groupId: names.group(group),
          topics: this.#offsetsOf(reached, readers),
          member: () => memberFor(first, readers),
        },
      }),
      last: async () => this.#preparation.meta(await this.#writer.seals(seal)),
      isIn: written => this.#isIn(group, written, reached),
      confirm: async () => {
        for (const reader of readers) await reader.holdAnew()
        await this.#checkPositions(group, positions, readers)
      },
      takenOver: cause => takenOver(group, cause),
    })
    for (const { topic, partition, offset } of reached) this.#log.setPosition(group, topic, partition, offset)
    for (const reader of readers) reader.settled(reached)
    return this.#writer.noted(places)
  }

  async #checkPositions(
    group: string,
    positions: readonly Position[],
    readers: readonly Reader[],
  ): Promise<void> {
    const unknown = positions.filter(({ topic, partition, offset }) => {
      const cursor = readers.find(reader => reader.topic === topic)?.lane(partition)?.cursor
      return cursor === undefined || !Number.isInteger(offset) || offset < 0 || offset > cursor
    })
    if (unknown.length > 0) await this.checkRange(unknown)
    for (const { topic, partition, offset } of positions) {
      const own = readers.filter(reader => reader.topic === topic)
      if (own.length === 0 && this.#readers.hasLeft(topic, group)) throw departed(topic, group)
      // A partition that went away and came back was worked on by another member meanwhile.
      const mine = own.some(reader => offset > (reader.lane(partition)?.done ?? Number.POSITIVE_INFINITY))
      if (own.length === 0 || mine) continue
      throw new GraspError(
        'PARTITION_LOST',
        `another member of group ${group} worked on ${topic}/${partition} up to offset ${offset} or works on it ` +
          'now; what this one did since is not committed',
      )
    }
  }

  #reached(position: Position, readers: readonly Reader[]): Position {
    const lane = readers.find(reader => reader.topic === position.topic)?.lane(position.partition)
    return lane ? { ...position, offset: lane.reach(position.offset) } : position
  }

  #offsetsOf(positions: readonly Position[], readers: readonly Reader[]): Offsets['topics'] {
    return [...new Set(positions.map(({ topic }) => topic))].map(topic => ({
      topic: this.#log.names.topic(topic),
      partitions: positions
        .filter(position => position.topic === topic)
        .map(({ partition, offset }) => {
          const lane = readers.find(reader => reader.topic === topic)?.lane(partition)
          const metadata = lane ? seenText(lane.seenBelow(offset)) : ''
          return { partition, offset: String(offset), metadata }
        }),
    }))
  }

  /** Whether a transaction with these outputs and positions is in; nothing of it is open any more. */
  async #isIn(group: string, places: readonly Place[], positions: readonly Position[]): Promise<boolean> {
    if (places.length > 0 || positions.length === 0) return this.#writer.isWritten(places)
    const stored = await this.#log.positions(group, positions[0]!.topic)
    return positions.every(({ partition, offset }) => stored[partition]!.offset === offset)
  }
}

function takenOver(group: string, cause: unknown): GraspError {
  return new GraspError(
    'PARTITION_LOST',
    `another process works as group ${group} and took over what this one was working on; ` +
      'what this one did since is not committed',
    { cause },
  )
}

/** In whose name a position is committed. */
function memberFor({ topic, partition }: Position, readers: readonly Reader[]): Member {
  const own = readers.filter(reader => reader.topic === topic)
  return (own.find(reader => reader.lane(partition)) ?? own[0])?.member ?? NO_MEMBER
}
