/**
 * Cuts a data file into its items without holding it in memory: the elements of one JSON array, or the lines
 * of a JSON-lines file. Only brackets, quotes and commas are looked at, so a damaged item costs itself alone;
 * what damages the whole file (cut off, empty, not text) ends the reading with DATA_INVALID.
 */
import type { createReadStream } from 'node:fs'
import { type FileHandle, open } from 'node:fs/promises'
import { describeError, GraspError } from '../../errors/grasp-error.ts'

export interface Segment {
  /** From 1. */
  readonly item: number
  /** Line of the file on which it starts, from 1. */
  readonly line: number
  /** Size in the file. */
  readonly size: number
  /** UTF-8; null where it is larger than `maxBytes`. */
  readonly bytes: Uint8Array | null
}

export interface SegmentOptions {
  /** How messages name the file. */
  readonly label: string
  /** Larger items are skipped over without being held. */
  readonly maxBytes: number
}

const [TAB, LF, CR, SPACE, QUOTE, COMMA, BACKSLASH] = [0x09, 0x0a, 0x0d, 0x20, 0x22, 0x2c, 0x5c]
const [OPEN_BRACKET, CLOSE_BRACKET, OPEN_BRACE, CLOSE_BRACE] = [0x5b, 0x5d, 0x7b, 0x7d]

const isBlank = (byte: number | undefined) => byte === SPACE || byte === LF || byte === CR || byte === TAB

function damaged(label: string, what: string, cause?: unknown): GraspError {
  return new GraspError('DATA_INVALID', `${label}: ${what}`, cause === undefined ? {} : { cause })
}

/** Bytes of the item under way; beyond the limit only their number. */
class Collected {
  #parts: Uint8Array[] = []
  #limit: number
  size = 0

  constructor(limit: number) {
    this.#limit = limit
  }

  add(part: Uint8Array): void {
    this.size += part.length
    if (this.size > this.#limit) this.#parts = []
    else if (part.length > 0) this.#parts.push(part)
  }

  /** Takes what was collected, without blanks around it. */
  take(): { size: number; bytes: Uint8Array | null } {
    const size = this.size
    const all = size > this.#limit ? null : Buffer.concat(this.#parts)
    this.size = 0
    this.#parts = []
    if (all === null) return { size, bytes: null }
    let [start, end] = [0, all.length]
    while (start < end && isBlank(all[start])) start++
    while (end > start && isBlank(all[end - 1])) end--
    return { size: end - start, bytes: all.subarray(start, end) }
  }
}

async function openFile(file: string, label: string): Promise<FileHandle> {
  let handle: FileHandle
  try {
    handle = await open(file)
  } catch (error) {
    const missing = (error as NodeJS.ErrnoException).code === 'ENOENT'
    throw damaged(
      label,
      missing ? 'there is no such file' : `cannot be opened: ${describeError(error)}`,
      error,
    )
  }
  const kind = await handle.stat()
  if (kind.isFile()) return handle
  await handle.close()
  throw damaged(
    label,
    `is ${kind.isDirectory() ? 'a folder' : 'not a regular file'}; expected a JSON or JSON-lines file`,
  )
}

/** The format by the file's first bytes, and how many of them (a byte order mark) to skip. */
async function recognise(handle: FileHandle, label: string): Promise<{ array: boolean; skip: number }> {
  const head = Buffer.alloc(65536)
  const { bytesRead } = await handle.read(head, 0, head.length, 0)
  if (bytesRead === 0) throw damaged(label, 'is empty; expected a JSON array of items, or one item a line')
  const start = head.subarray(0, bytesRead)
  if (start[0] === 0x1f && start[1] === 0x8b) throw damaged(label, 'is compressed (gzip); unpack it first')
  if ((start[0] === 0xff && start[1] === 0xfe) || (start[0] === 0xfe && start[1] === 0xff)) {
    throw damaged(label, 'is UTF-16; save it as UTF-8')
  }
  const skip = start[0] === 0xef && start[1] === 0xbb && start[2] === 0xbf ? 3 : 0
  const first = start.subarray(skip).find(byte => !isBlank(byte))
  if (first === undefined && bytesRead < head.length) {
    throw damaged(label, 'holds only blanks; expected a JSON array of items, or one item a line')
  }
  return { array: first === OPEN_BRACKET, skip }
}

/** @throws GraspError DATA_INVALID, after the items before the damage. */
export async function* segments(file: string, options: SegmentOptions): AsyncGenerator<Segment> {
  const handle = await openFile(file, options.label)
  try {
    const { array, skip } = await recognise(handle, options.label)
    const stream = handle.createReadStream({ start: skip, highWaterMark: 1 << 20, autoClose: false })
    yield* array ? elements(stream, options, skip) : lines(stream, options)
  } finally {
    await handle.close()
  }
}

type Bytes = AsyncIterable<Uint8Array> & Pick<ReturnType<typeof createReadStream>, 'destroy'>

/** Where in the structure of JSON the bytes passed so far end. */
class Scanner {
  depth = 0
  inText = false
  line = 1
  /** Line of the first byte since the last stop that is not blank; 0 while there is none. */
  startLine = 0
  #escaped = false

  /**
   * Passes over bytes from `i` up to a comma or closing bracket that ends an element of the outermost array,
   * or the opening of that array, or anything after its end, and returns its index; the chunk's length where
   * there is none.
   */
  next(chunk: Uint8Array, i: number): number {
    let { depth, inText, line, startLine } = this
    let escaped = this.#escaped
    let at = i
    for (; at < chunk.length; at++) {
      const byte = chunk[at]!
      if (inText) {
        if (escaped) escaped = false
        else if (byte === BACKSLASH) escaped = true
        else if (byte === QUOTE) inText = false
        else if (byte === LF) line++
        continue
      }
      if (byte === LF) line++
      if (byte <= SPACE && isBlank(byte)) continue
      if (depth === 0) {
        if (byte === OPEN_BRACKET || byte === OPEN_BRACE) depth = 1
        break
      }
      if (depth === 1 && (byte === COMMA || byte === CLOSE_BRACKET || byte === CLOSE_BRACE)) {
        if (byte !== COMMA) depth = 0
        break
      }
      if (startLine === 0) startLine = line
      if (byte === QUOTE) inText = true
      else if (byte === OPEN_BRACKET || byte === OPEN_BRACE) depth++
      else if (byte === CLOSE_BRACKET || byte === CLOSE_BRACE) depth--
    }
    this.depth = depth
    this.inText = inText
    this.line = line
    this.startLine = startLine
    this.#escaped = escaped
    return at
  }
}

async function* elements(
  stream: Bytes,
  { label, maxBytes }: SegmentOptions,
  skip: number,
): AsyncGenerator<Segment> {
  const collected = new Collected(maxBytes)
  const scanner = new Scanner()
  let [item, offset] = [0, skip]
  let [opened, closed] = [false, false]
  for await (const chunk of stream) {
    let from = 0
    for (let i = scanner.next(chunk, 0); i < chunk.length; i = scanner.next(chunk, i + 1)) {
      if (closed) {
        const where = `byte ${offset + i}, line ${scanner.line}`
        throw damaged(label, `there is more after the array's end (${where}); expected one JSON array`)
      }
      if (opened) {
        closed = scanner.depth === 0
        collected.add(chunk.subarray(from, i))
        const { size, bytes } = collected.take()
        const line = scanner.startLine || scanner.line
        // `[]` holds nothing, but a comma before the end promises an item, which is then empty.
        if (size > 0 || !closed || item > 0) yield { item: ++item, line, size, bytes }
      }
      opened = true
      scanner.startLine = 0
      from = i + 1
    }
    collected.add(chunk.subarray(from))
    offset += chunk.length
  }
  if (closed) return
  const { line, startLine, inText } = scanner
  const where =
    startLine === 0 ? `after item ${item}` : `inside item ${item + 1}, which starts on line ${startLine}`
  const text = inText ? ' and inside a text (is a quotation mark missing?)' : ''
  throw damaged(label, `is cut off: it ends at byte ${offset} (line ${line}), ${where}${text}; expected ']'`)
}

/** Whether JSON ends before its brackets and texts do. */
function isCutOff(bytes: Uint8Array): boolean {
  const scanner = new Scanner()
  for (let i = 0; i < bytes.length; i++) i = scanner.next(bytes, i)
  return scanner.depth > 0 || scanner.inText
}

async function* lines(stream: Bytes, { label, maxBytes }: SegmentOptions): AsyncGenerator<Segment> {
  const collected = new Collected(maxBytes)
  let [line, item] = [1, 0]
  for await (const chunk of stream) {
    let from = 0
    for (let end = chunk.indexOf(LF); end !== -1; end = chunk.indexOf(LF, from)) {
      collected.add(chunk.subarray(from, end))
      from = end + 1
      const { size, bytes } = collected.take()
      if (size > 0) yield { item: ++item, line, size, bytes }
      line++
    }
    collected.add(chunk.subarray(from))
  }
  const { size, bytes } = collected.take()
  if (size === 0) return
  if (bytes !== null && isCutOff(bytes)) {
    throw damaged(label, `is cut off: it ends in the middle of item ${item + 1} (line ${line})`)
  }
  yield { item: ++item, line, size, bytes }
}
