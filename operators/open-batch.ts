import type { LogRecord } from '../bus/port.ts'
import type { TrainItem } from '../engine/port.ts'
import type { Slice, Span } from '../schemas/types.ts'
import type { KeyedBatch } from './batch-key.ts'
import { joinTeacher } from './slicing.ts'

/** The slices of one batch as they arrive, until each of its rollouts is whole, failed, refused or lost. */
export class OpenBatch {
  readonly number: number
  readonly size: number
  readonly rolloutVersion: number
  /** By rollout: the slices to train on, and how many came of how many. */
  readonly #slices = new Map<number, Slice[]>()
  readonly #counts = new Map<number, { readonly came: number; readonly parts: number }>()
  /** Rollouts of which all slices came; and those that are not trained on. */
  readonly #whole = new Set<number>()
  readonly #unusable = new Set<number>()
  readonly #spans = new Map<number, { from: number; to: number }>()
  readonly #instances = new Map<number, string>()
  #lost = 0
  #klSum = 0

  constructor({ number, size }: KeyedBatch, rolloutVersion: number) {
    this.number = number
    this.size = size
    this.rolloutVersion = rolloutVersion
  }

  add(record: LogRecord<'slices'>): void {
    this.#count(record, record.value.failed === null)
  }

  /** A slice that cannot be used: its rollout is not trained on, but was scored, and is whole once all of it came. */
  refuse(record: LogRecord<'slices'>): void {
    const { index } = record.value.batch
    if (index >= 0 && index < this.size) this.#count(record, false)
    else this.lose(record)
  }

  /** Of this batch something came that cannot be decoded, so that nobody knows of which rollout. */
  lose(place: { readonly partition: number; readonly offset: number }): void {
    this.covers(place)
    this.#lost += 1
  }

  /** Extends the batch's span of offsets. */
  covers({ partition, offset }: { readonly partition: number; readonly offset: number }): void {
    const span = this.#spans.get(partition)
    this.#spans.set(partition, {
      from: Math.min(span?.from ?? offset, offset),
      to: Math.max(span?.to ?? 0, offset + 1),
    })
  }

  /** Whether nothing more is to come: what is missing was lost. */
  get complete(): boolean {
    let missing = 0
    for (let index = 0; index < this.size; index++) {
      if (this.#whole.has(index)) continue
      const counts = this.#counts.get(index)
      missing += counts === undefined ? 1 : counts.parts - counts.came
    }
    return missing <= this.#lost
  }

  /** Whether the rollouts `from` to `to` (exclusive) can be taken. */
  has(from: number, to: number): boolean {
    if (this.complete) return true
    for (let index = from; index < Math.min(to, this.size); index++) if (!this.#whole.has(index)) return false
    return true
  }

  /** Takes the rollouts `from` to `to` for accumulation, in the order of their indices, and lets go of their bytes. */
  take(from: number, to: number): TrainItem[] {
    const items: TrainItem[] = []
    for (let index = from; index < Math.min(to, this.size); index++) {
      const slices = this.#slices.get(index) ?? []
      this.#slices.set(index, [])
      const first = slices[0]
      if (first === undefined || !this.#whole.has(index)) continue
      items.push({
        loss: 'forward-kl',
        prompt: Int32Array.from(first.prompt),
        response: Int32Array.from(first.response),
        teacher: joinTeacher(slices),
      })
      const kl = slices.flatMap(slice => slice.kl)
      this.#klSum += kl.reduce((sum, value) => sum + value, 0) / kl.length
    }
    return items
  }

  #count(record: LogRecord<'slices'>, isUsable: boolean): void {
    const slice = record.value
    const { index } = slice.batch
    this.covers(record)
    if (this.#whole.has(index)) return // a redelivery of what is already here
    const came = (this.#counts.get(index)?.came ?? 0) + 1
    this.#counts.set(index, { came, parts: slice.parts })
    if (!isUsable) this.#unusable.add(index)
    const isOut = this.#unusable.has(index)
    this.#slices.set(index, isOut ? [] : [...(this.#slices.get(index) ?? []), slice])
    if (came < slice.parts) return
    this.#whole.add(index)
    if (!isOut) this.#instances.set(index, slice.instance)
  }

  /** Sum over the taken responses of their mean KL a token, as the scoring stage measured it. */
  get klSum(): number {
    return this.#klSum
  }

  get instances(): string[] {
    return [...this.#instances].sort(([a], [b]) => a - b).map(([, instance]) => instance)
  }

  get spans(): Span[] {
    return [...this.#spans]
      .sort(([a], [b]) => a - b)
      .map(([partition, { from, to }]) => ({ partition, from, to }))
  }
}
