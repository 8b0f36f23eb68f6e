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

/** What Kafka allows beside a committed offset, less a little (`offset.metadata.max.bytes`). */
const MOST_TEXT = 4000
const PREFIX = 'seen'

/**
 * As it is kept beside a committed offset: for each topic its name, then partition.round.offset.index of each of its
 * partitions, in base 36. Of more than there is room for (some hundred partitions), what was seen last.
 */
export function seenText(seen: Seen): string {
  const topics = new Map<string, string[]>()
  let length = PREFIX.length
  for (const [source, mark] of Object.entries(seen).reverse()) {
    const [topic, partition] = source.split('/') as [string, string]
    const text = [Number(partition), ...mark].map(part => part.toString(36)).join('.')
    const known = topics.get(topic)
    length += text.length + 1 + (known ? 0 : topic.length + 1)
    if (length > MOST_TEXT) break
    if (known) known.push(text)
    else topics.set(topic, [text])
  }
  // What was seen last stays last.
  const lines = [...topics].map(([topic, marks]) => `;${topic} ${marks.reverse().join(' ')}`)
  return lines.length === 0 ? '' : PREFIX + lines.reverse().join('')
}

export function seenOf(text: string | null | undefined): Seen {
  if (!text?.startsWith(`${PREFIX};`)) return {}
  const entries = text
    .slice(PREFIX.length + 1)
    .split(';')
    .flatMap(line => {
      const [topic, ...marks] = line.split(' ')
      return marks.map(mark => {
        const [partition, ...parts] = mark.split('.').map(part => Number.parseInt(part, 36))
        return [`${topic}/${partition}`, parts as unknown as Mark] as const
      })
    })
  return Object.fromEntries(entries)
}
