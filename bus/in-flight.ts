/**
 * What a stage was given and has not committed yet. Work may finish in any order; what may be committed is
 * the finished run from the front of each partition, so that a position never passes an unfinished record.
 * Several deliveries that were finished together (a batch) are committed together or not at all.
 */
import { GraspError } from '../errors/grasp-error.ts'
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

interface Slot {
  readonly place: Place
  /** Counts the deliveries of the partition. */
  readonly index: number
  /** Counts all deliveries. */
  readonly sequence: number
  item: Item | undefined
}

interface Item {
  readonly finished: Finished
  readonly slots: readonly Slot[]
}

interface Lane {
  readonly slots: Slot[]
  /** `index` of the first slot. */
  start: number
}

export class InFlight {
  readonly #lanes = new Map<number, Lane>()
  readonly #slots = new Map<string, Slot>()
  /** How many deliveries of a place were abandoned and may still be finished. */
  readonly #abandoned = new Map<string, number>()
  /** Abandoned since something was taken out last. */
  readonly #lost = new Set<number>()
  #sequence = 0

  /** Notes a delivery. Within a partition, deliveries come in the order of their offsets. */
  deliver({ topic, partition, offset }: Place): void {
    let lane = this.#lanes.get(partition)
    if (!lane) {
      lane = { slots: [], start: 0 }
      this.#lanes.set(partition, lane)
    }
    const index = lane.start + lane.slots.length
    const slot: Slot = {
      place: { topic, partition, offset },
      index,
      sequence: this.#sequence++,
      item: undefined,
    }
    lane.slots.push(slot)
    this.#slots.set(slotKey(slot.place), slot)
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
      for (const slot of this.#lanes.get(partition)?.slots ?? []) {
        const key = slotKey(slot.place)
        this.#slots.delete(key)
        if (slot.item) torn.add(slot.item)
        else this.#abandoned.set(key, (this.#abandoned.get(key) ?? 0) + 1)
      }
      this.#lanes.delete(partition)
    }
    for (const { slots } of torn) {
      if (slots.some(({ place }) => !partitions.includes(place.partition))) throw lost(slots[0]!.place)
    }
  }

  /**
   * Errors: STAGE_FAILED for a record that was not delivered, or was finished before, or for none at all;
   * PARTITION_LOST for a batch of which a part was abandoned.
   */
  finish(finished: Finished): void {
    const { consumed } = finished
    if (consumed.length === 0) throw new GraspError('STAGE_FAILED', 'a stage gave outputs for no record')
    const abandoned = consumed.filter(place => this.#isAbandoned(place))
    if (abandoned.length > 0) {
      for (const place of abandoned) this.#forget(slotKey(place))
      if (abandoned.length === consumed.length) return
      throw lost(abandoned[0]!)
    }
    const item: Item = { finished, slots: consumed.map(place => this.#slotOf(place)) }
    for (const slot of item.slots) {
      if (slot.item) throw misplaced(slot.place, 'twice')
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
    const items = new Set<Item>()
    const positions: Position[] = []
    for (const [partition, lane] of this.#lanes) {
      const taken = lane.slots.splice(0, reach.get(partition)! - lane.start)
      lane.start += taken.length
      for (const { place, item } of taken) {
        items.add(item!)
        this.#slots.delete(slotKey(place))
      }
      const last = taken.at(-1)
      if (last) positions.push({ ...last.place, offset: last.place.offset + 1 })
    }
    if (positions.length === 0) return undefined
    const ordered = [...items].sort((a, b) => firstOf(a) - firstOf(b))
    return {
      positions,
      finished: ordered.map(item => item.finished),
      firsts: ordered.map(item => firstSlot(item).place),
    }
  }

  /** Delivered and not finished. */
  unfinished(): Place[] {
    return [...this.#slots.values()].filter(slot => !slot.item).map(slot => slot.place)
  }

  /** Not delivered again since; or delivered again and finished already. */
  #isAbandoned(place: Place): boolean {
    const key = slotKey(place)
    if (!this.#abandoned.has(key)) return false
    const slot = this.#slots.get(key)
    return slot === undefined || slot.item !== undefined
  }

  #forget(key: string): void {
    const count = this.#abandoned.get(key)! - 1
    if (count === 0) this.#abandoned.delete(key)
    else this.#abandoned.set(key, count)
  }

  #slotOf(place: Place): Slot {
    const slot = this.#slots.get(slotKey(place))
    if (slot?.place.topic === place.topic) return slot
    throw misplaced(place, 'which is not in flight')
  }

  /** How far each partition can be committed, as an index (exclusive). */
  #reach(): Map<number, number> {
    const reach = new Map<number, number>()
    for (const [partition, { slots, start }] of this.#lanes) {
      const unfinished = slots.findIndex(slot => !slot.item)
      reach.set(partition, start + (unfinished < 0 ? slots.length : unfinished))
    }
    // A batch that is not wholly within reach holds back what comes after its members, which may in turn cut
    // other batches: repeat until nothing changes.
    for (let changed = true; changed; ) {
      changed = false
      for (const [partition, { slots, start }] of this.#lanes) {
        for (const { index, item } of slots) {
          if (index >= reach.get(partition)!) break
          if (item!.slots.every(slot => slot.index < reach.get(slot.place.partition)!)) continue
          reach.set(partition, Math.max(start, index))
          changed = true
          break
        }
      }
    }
    return reach
  }
}

function firstOf(item: Item): number {
  return firstSlot(item).sequence
}

function firstSlot({ slots }: Item): Slot {
  return slots.reduce((first, slot) => (slot.sequence < first.sequence ? slot : first))
}

function lost({ topic, partition }: Place): GraspError {
  return new GraspError(
    'PARTITION_LOST',
    `${topic}/${partition} went to another member of the group, in the middle of a batch over several partitions: ` +
      'the stage starts again from the committed positions',
  )
}

function misplaced({ topic, partition, offset }: Place, how: string): GraspError {
  return new GraspError('STAGE_FAILED', `a stage finished ${topic}/${partition} offset ${offset} ${how}`)
}

function slotKey({ partition, offset }: Place): string {
  return `${partition}/${offset}`
}
