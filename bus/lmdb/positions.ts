/**
 * The positions of consumer groups, guarded: this log has no group coordinator, so a second process that
 * works on the same topic as the same group would do everything twice. It is noticed at the next commit,
 * when the stored position is not the one that this process last saw or set.
 */
import { GraspError } from '../../errors/grasp-error.ts'
import type { Topic } from '../../schemas/types.ts'
import type { Position } from '../port.ts'
import type { Store } from './store.ts'

export class Positions {
  readonly #store: Store
  readonly #seen = new Map<string, number>()

  constructor(store: Store) {
    this.#store = store
  }

  /** From here on, commits of the group to the topic are guarded. */
  watch(topic: Topic, group: string): void {
    for (let partition = 0; partition < this.#store.partitions(topic); partition++) {
      this.#seen.set(keyOf(topic, group, partition), this.#store.position(topic, group, partition))
    }
  }

  /** After a transaction failed, what was set in it is not so. */
  forget(): void {
    this.#seen.clear()
  }

  /** Errors: LOG_MISMATCH for a position beyond the log, LOG_UNAVAILABLE for a group that another process moved. */
  check(group: string, position: Position): void {
    this.checkRange(position)
    const { topic, partition } = position
    const expected = this.#seen.get(keyOf(topic, group, partition))
    const stored = this.#store.position(topic, group, partition)
    if (expected === undefined || expected === stored) return
    throw new GraspError(
      'LOG_UNAVAILABLE',
      `another process works on ${topic}/${partition} as group ${group}: its position was ${expected} and is ` +
        `now ${stored}. Stop one of the two; what this one did since is not committed`,
    )
  }

  checkRange({ topic, partition, offset }: Position): void {
    const end = this.#store.end(topic, partition)
    const valid = Number.isInteger(partition) && partition >= 0 && partition < this.#store.partitions(topic)
    if (valid && Number.isInteger(offset) && offset >= 0 && offset <= end) return
    throw new GraspError(
      'LOG_MISMATCH',
      `position ${offset} of ${topic}/${partition} does not exist: the log in ${this.#store.path} ends at ${end}`,
    )
  }

  set(group: string, { topic, partition, offset }: Position): void {
    this.#store.setPosition(topic, group, partition, offset)
    this.#seen.set(keyOf(topic, group, partition), offset)
  }
}

function keyOf(topic: Topic, group: string, partition: number): string {
  return `${partition}/${topic}/${group}`
}
