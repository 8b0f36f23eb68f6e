/**
 * What a record was made of, written as a header: the source's topic, partition and offset, the output's index
 * among the outputs of that source, and how often its group was set back (so that reprocessing on purpose is no
 * repetition). Commits go in the order of the source's offsets, so within one partition the origins of one source
 * partition only ascend; whatever does not is a repetition of what is there already.
 */
import type { Origin } from '../port.ts'
import type { RawMessage } from './client.ts'

export const ORIGIN_HEADER = 'grasp-origin'

/** [round, offset, index], compared in this order. */
export type Mark = readonly [number, number, number]

/** The last origin seen of each source partition. */
export type Seen = Readonly<Record<string, Mark>>

export function originHeader({ topic, partition, offset, index }: Origin, round: number): string {
  return `${topic}/${partition}/${round}/${offset}/${index}`
}

/** What a record's header says; undefined where it has none. */
export function originOf({
  headers,
}: RawMessage): { readonly source: string; readonly mark: Mark } | undefined {
  const text = headers[ORIGIN_HEADER]?.toString()
  const match = text === undefined ? undefined : /^(\w+\/\d+)\/(\d+)\/(\d+)\/(\d+)$/.exec(text)
  if (!match) return undefined
  return { source: match[1]!, mark: [Number(match[2]), Number(match[3]), Number(match[4])] }
}

/** Whether a record with this mark comes after one with the other. */
export function isAfter(mark: Mark, last: Mark): boolean {
  for (let i = 0; i < mark.length; i++) if (mark[i] !== last[i]) return mark[i]! > last[i]!
  return false
}

/** As it is kept beside a committed offset (Kafka allows 4096 bytes there). */
export function seenText(seen: Seen): string {
  const text = JSON.stringify(seen)
  return text.length <= 4000 ? text : ''
}

export function seenOf(text: string | null | undefined): Seen {
  if (!text?.startsWith('{')) return {}
  return JSON.parse(text) as Seen
}
