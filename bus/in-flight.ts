/**
 * What a stage was given and has not committed yet. Work may finish in any order; what may be committed is
 * the finished run from the front of each partition, so that a position never passes an unfinished record.
 * Several deliveries that were finished together (a batch) are committed together or not at all.
 */
import { GraspError } from '../errors/grasp-error.ts'
import type { Topic } from '../schemas/types.ts'
import type { Output, Place, Position } from './port.ts'

/** What a stage gives for deliveries that it is done with, at least one: the records to write for them. */
export interface Finished {
  readonly consumed: readonly Place[]
  readonly outputs: readonly Output[]
}

/** What can be committed now. */
export interface Ready {
  readonly positions: readonly Position[]
  /** In the order in which their first deliveries were handed out. */
  readonly finished: readonly Finished[]
  /** Of each of these, the delivery that was handed out first. */
  readonly firsts: readonly Place[]
}

interface Lane {
  readonly topic: Topic
  readonly partition: number
  /** Their offsets ascend. */
  readonly slots: Slot[]
}

interface Slot {
  readonly lane: Lane
  readonly offset: number
  /** Counts all deliveries. */
  readonly sequence: number
  item: Item | undefined
}

interface Item {
  readonly finished: Finished
  readonly slots: readonly Slot[]
  /** Which of them was handed out first. */
  readonly first: Slot
}

export class InFlight {
  readonly #lanes = new Map<number, Lane>()
  /** How many deliveries of a place were abandoned and may still be finished. */
  readonly #abandoned = new Map<string, number>()
  /** Abandoned since something was taken out last. */
  readonly #lost = new Set<number>()
  #sequence = 0

  /** Notes a delivery. Within a partition, deliveries come in the order of their offsets. */
  deliver({ topic, partition, offset }: Place): void {
    let lane = this.#lanes.get(partition)
    if (!lane) {
      lane = { topic, partition, slots: [] }
      this.#lanes.set(partition, lane)
    }
    lane.slots.push({ lane, offset, sequence: this.#sequence++, item: undefined })
  }

  /**
   * What was delivered of these partitions is somebody else's now: finishing it is ignored. Errors:
   * PARTITION_LOST when a batch was finished that it is only a part of, since the rest of that batch is neither
   * done nor to be had again but from the committed positions.
   */
  abandon(partitions: readonly number[]): void {
    const torn = new Set<Item>()
    for (const partition of partitions) {
      this.#lost.add(partition)
      for (const { offset, item } of this.#lanes.get(partition)?.slots ?? []) {
        if (item) torn.add(item)
        else {
          const key = placeKey(partition, offset)
          this.#abandoned.set(key, (this.#abandoned.get(key) ?? 0) + 1)
        }
      }
      this.#lanes.delete(partition)
    }
    for (const { slots } of torn) {
      if (slots.some(({ lane }) => !partitions.includes(lane.partition))) throw lost(slots[0]!.lane)
    }
  }

  /**
   * Errors: STAGE_FAILED for a record that was not delivered, or was finished before, or for none at all;
   * PARTITION_LOST for a batch of which a part was abandoned.
   */
  finish(finished: Finished): void {
    const { consumed } = finished
    if (consumed.length === 0) throw new GraspError('STAGE_FAILED', 'a stage gave outputs for no record')
    if (this.#abandoned.size > 0 && this.#isForOthers(consumed)) return
    const slots = consumed.map(place => this.#slotOf(place))
    let first = slots[0]!
    for (const slot of slots) if (slot.sequence < first.sequence) first = slot
    const item: Item = { finished, slots, first }
    for (const slot of slots) {
      if (slot.item) throw misplaced(placeOf(slot.lane, slot.offset), 'twice')
      slot.item = item
    }
  }

  /**
   * What was taken out last, less the partitions that were abandoned since: a commit of it was refused as a whole.
   * Undefined when none was. Errors: PARTITION_LOST for a batch that is torn by it.
   */
  without(ready: Ready): Ready | undefined {
    if (!ready.positions.some(({ partition }) => this.#lost.has(partition))) return undefined
    const kept = ready.finished.map(({ consumed }) => {
      const own = consumed.filter(({ partition }) => !this.#lost.has(partition))
      if (own.length > 0 && own.length < consumed.length) throw lost(consumed[0]!)
      return own.length > 0
    })
    return {
      positions: ready.positions.filter(({ partition }) => !this.#lost.has(partition)),
      finished: ready.finished.filter((_, i) => kept[i]),
      firsts: ready.firsts.filter((_, i) => kept[i]),
    }
  }

  /** Takes out what can be committed; undefined when nothing can. */
  take(): Ready | undefined {
    this.#lost.clear()
    const reach = this.#reach()
    const items: Item[] = []
    const positions: Position[] = []
    for (const lane of this.#lanes.values()) {
      const taken = lane.slots.splice(0, indexOf(lane.slots, reach.get(lane.partition)!))
      for (const slot of taken) if (slot.item!.first === slot) items.push(slot.item!)
      const last = taken.at(-1)
      if (last) positions.push(placeOf(lane, last.offset + 1))
    }
    if (positions.length === 0) return undefined
    items.sort((a, b) => a.first.sequence - b.first.sequence)
    return {
      positions,
      finished: items.map(({ finished }) => finished),
      firsts: items.map(({ first }) => placeOf(first.lane, first.offset)),
    }
  }

  /** Delivered and not finished, in the order of the deliveries. */
  unfinished(): Place[] {
    return [...this.#lanes.values()]
      .flatMap(({ slots }) => slots.filter(({ item }) => !item))
      .sort((a, b) => a.sequence - b.sequence)
      .map(({ lane, offset }) => placeOf(lane, offset))
  }

  /** Whether all of them were abandoned. Errors: PARTITION_LOST when only some were. */
  #isForOthers(consumed: readonly Place[]): boolean {
    const abandoned = consumed.filter(place => this.#isAbandoned(place))
    if (abandoned.length === 0) return false
    for (const { partition, offset } of abandoned) this.#forget(placeKey(partition, offset))
    if (abandoned.length < consumed.length) throw lost(abandoned[0]!)
    return true
  }

  /** Not delivered again since; or delivered again and finished already. */
  #isAbandoned(place: Place): boolean {
    if (!this.#abandoned.has(placeKey(place.partition, place.offset))) return false
    const slot = this.#find(place)
    return slot === undefined || slot.item !== undefined
  }

  #forget(key: string): void {
    const count = this.#abandoned.get(key)! - 1
    if (count === 0) this.#abandoned.delete(key)
    else this.#abandoned.set(key, count)
  }

  #slotOf(place: Place): Slot {
    const slot = this.#find(place)
    if (slot?.lane.topic === place.topic) return slot
    throw misplaced(place, 'which is not in flight')
  }

  #find({ partition, offset }: Place): Slot | undefined {
    const slots = this.#lanes.get(partition)?.slots ?? []
    const slot = slots[indexOf(slots, offset)]
    return slot?.offset === offset ? slot : undefined
  }

  /** How far each partition can be committed: the offset to stop before. */
  #reach(): Map<number, number> {
    const reach = new Map<number, number>()
    for (const [partition, { slots }] of this.#lanes) {
      reach.set(partition, slots.find(slot => !slot.item)?.offset ?? Number.POSITIVE_INFINITY)
    }
    // A batch that is not wholly within reach holds back what comes after its members, which may in turn cut
    // other batches: repeat until nothing changes.
    for (let changed = true; changed; ) {
      changed = false
      for (const [partition, { slots }] of this.#lanes) {
        for (const { offset, item } of slots) {
          if (offset >= reach.get(partition)!) break
          if (item!.slots.every(slot => slot.offset < reach.get(slot.lane.partition)!)) continue
          reach.set(partition, offset)
          changed = true
          break
        }
      }
    }
    return reach
  }
}

/** Of the first slot at or behind an offset. */
function indexOf(slots: readonly Slot[], offset: number): number {
  let low = 0
  let high = slots.length
  if (high === 0) return 0
  // Mostly there are no gaps.
  const guess = offset - slots[0]!.offset
  if (guess >= 0 && guess < high && slots[guess]!.offset === offset) return guess
  while (low < high) {
    const middle = (low + high) >> 1
    if (slots[middle]!.offset < offset) low = middle + 1
    else high = middle
  }
  return low
}

function placeOf({ topic, partition }: Lane, offset: number): Place {
  return { topic, partition, offset }
}

function lost({ topic, partition }: Pick<Place, 'topic' | 'partition'>): GraspError {
  return new GraspError(
    'PARTITION_LOST',
    `${topic}/${partition} went to another member of the group, in the middle of a batch over several partitions: ` +
      'the stage starts again from the committed positions',
  )
}

function misplaced({ topic, partition, offset }: Place, how: string): GraspError {
  return new GraspError('STAGE_FAILED', `a stage finished ${topic}/${partition} offset ${offset} ${how}`)
}

function placeKey(partition: number, offset: number): string {
  return `${partition}/${offset}`
}
