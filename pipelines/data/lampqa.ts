/**
 * Reads questions in the format of LaMP-QA: items `{id, question, narrative, category, profile: [{id, text}],
 * rubric_aspects: [{aspect, reason, evidence}]}`, in one JSON array or in JSON lines, UTF-8. `user` is optional
 * (by default the id); other fields are ignored. The file is streamed: memory holds one item at a time.
 */
import { GraspError } from '../../errors/grasp-error.ts'
import type { Question } from '../../schemas/types.ts'
import { Fault, questionOf } from './question.ts'
import { type Segment, segments } from './segments.ts'

export interface LampQaOptions {
  readonly split: string
  /** UTF-8 bytes of the longest post that is taken. */
  readonly maxPostBytes: number
  /** Only the first items of the file. */
  readonly limit?: number | undefined
  /** Ids that are taken and where; give the same map for all splits, since ids name instances of a whole run. */
  readonly taken?: Map<string, string>
  /** How messages name the file; by default its path. */
  readonly label?: string
}

export type LampQaItem = {
  /** From 1, in the file. */
  readonly item: number
  readonly line: number
} & (
  | { readonly question: Question; readonly error?: undefined }
  /** `found` is the item as it was parsed, else its text; null where it was too large to hold. */
  | { readonly question?: undefined; readonly error: GraspError; readonly found: unknown }
)

/** No item of a text model's data is larger; what is, is damage. */
const MAX_ITEM_BYTES = 64 * 1024 * 1024

const decoder = new TextDecoder('utf-8', { fatal: true })

/** An id for messages, where the item has one. */
function idOf(value: unknown): string {
  const id = (value as { id?: unknown } | null | undefined)?.id
  return typeof id === 'string' || Number.isSafeInteger(id) ? `, id '${id}'` : ''
}

function parse(bytes: Uint8Array | null, size: number): unknown {
  if (bytes === null) throw new Fault(`is too large (${size} bytes); expected at most ${MAX_ITEM_BYTES}`)
  if (bytes.length === 0) throw new Fault('is empty; is there a comma too many?')
  let text: string
  try {
    text = decoder.decode(bytes)
  } catch {
    throw new Fault('is not valid UTF-8')
  }
  try {
    return JSON.parse(text)
  } catch (error) {
    throw new Fault(`is not valid JSON: ${(error as Error).message}`)
  }
}

function read(segment: Segment, file: string, options: LampQaOptions): LampQaItem {
  const { item, line } = segment
  let value: unknown
  try {
    value = parse(segment.bytes, segment.size)
    const question = questionOf(value, options)
    const first = options.taken?.get(question.id)
    if (first !== undefined) {
      throw new Fault(`id '${question.id}' was already used by ${first}; expected each id once`)
    }
    options.taken?.set(question.id, `${options.label ?? file} item ${item}`)
    return { item, line, question }
  } catch (error) {
    if (!(error instanceof Fault)) throw error
    const message = `${options.label ?? file}: item ${item} (line ${line}${idOf(value)}): ${error.message}`
    const found = value ?? (segment.bytes === null ? null : Buffer.from(segment.bytes).toString())
    return { item, line, error: new GraspError('RECORD_INVALID', message), found }
  }
}

/**
 * Yields every item, good or bad; one bad item does not end the rest.
 *
 * @throws GraspError DATA_INVALID where the file as a whole cannot be read; see {@link countItems}.
 */
export async function* readLampQa(file: string, options: LampQaOptions): AsyncGenerator<LampQaItem> {
  const label = options.label ?? file
  const own = { taken: new Map<string, string>(), ...options }
  for await (const segment of segments(file, { label, maxBytes: MAX_ITEM_BYTES })) {
    if (options.limit !== undefined && segment.item > options.limit) return
    yield read(segment, file, own)
  }
}

/**
 * Walks through the whole file before anything of it is used, so that a file that is cut off is refused
 * as a whole; returns how many items it has.
 *
 * @throws GraspError DATA_INVALID: no file, a folder, empty, cut off, no items.
 */
export async function countItems(file: string, label = file): Promise<number> {
  let count = 0
  for await (const { item } of segments(file, { label, maxBytes: MAX_ITEM_BYTES })) count = item
  if (count === 0) throw new GraspError('DATA_INVALID', `${label}: holds no items`)
  return count
}
