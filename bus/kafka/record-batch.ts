/**
 * Kafka's record batch (magic 2), uncompressed, written in one go into memory of the right size: kafkajs copies a
 * record six times on its way and sums it a byte at a time.
 *
 *     base offset i64, length i32, leader epoch i32, magic i8, CRC-32C of all that follows u32, attributes i16,
 *     last offset delta i32, first and last timestamp i64, producer id i64, epoch i16, base sequence i32,
 *     number of records i32, records
 *     record: length, attributes i8, timestamp delta, offset delta, key, value, headers; numbers are varints
 */
import { crc32c } from './crc32c.ts'

export interface BatchRecord {
  readonly key?: Uint8Array | string | null
  readonly value: Uint8Array | string | null
  readonly headers?: Readonly<Record<string, Uint8Array | string>>
}

export interface BatchOrigin {
  /** -1, -1, -1: none. */
  readonly producerId: bigint
  readonly producerEpoch: number
  readonly firstSequence: number
  readonly transactional: boolean
  /** Milliseconds since the epoch, of all records. */
  readonly timestamp: number
}

const HEADER = 61
/** What the field `length` does not count. */
const BEFORE_LENGTH = 12
const CRC = 17
const MAGIC = 2
const TRANSACTIONAL = 16

export class Batch {
  /** Bytes. */
  readonly size: number
  readonly #records: readonly BatchRecord[]
  /** Of each record, without its length. */
  readonly #sizes: readonly number[]

  constructor(records: readonly BatchRecord[]) {
    this.#records = records
    this.#sizes = records.map(bodySize)
    this.size = this.#sizes.reduce((sum, size) => sum + varintSize(size) + size, HEADER)
  }

  /** Into memory that holds `size` bytes from `at` on. */
  write(target: Buffer, at: number, origin: BatchOrigin): void {
    const { producerId, producerEpoch, firstSequence, transactional, timestamp } = origin
    target.writeBigInt64BE(0n, at)
    target.writeInt32BE(this.size - BEFORE_LENGTH, at + 8)
    target.writeInt32BE(0, at + 12)
    target.writeInt8(MAGIC, at + 16)
    target.writeInt16BE(transactional ? TRANSACTIONAL : 0, at + 21)
    target.writeInt32BE(this.#records.length - 1, at + 23)
    target.writeBigInt64BE(BigInt(timestamp), at + 27)
    target.writeBigInt64BE(BigInt(timestamp), at + 35)
    target.writeBigInt64BE(producerId, at + 43)
    target.writeInt16BE(producerEpoch, at + 51)
    target.writeInt32BE(firstSequence, at + 53)
    target.writeInt32BE(this.#records.length, at + 57)
    let position = at + HEADER
    for (let i = 0; i < this.#records.length; i++) {
      position = writeRecord(target, position, this.#records[i]!, i, this.#sizes[i]!)
    }
    target.writeUInt32BE(crc32c(target.subarray(at + CRC + 4, at + this.size)), at + CRC)
  }
}

function bodySize({ key, value, headers }: BatchRecord, index: number): number {
  let size = 2 + varintSize(index) + fieldSize(key) + fieldSize(value)
  let count = 0
  for (const name in headers) {
    count++
    size += fieldSize(name) + fieldSize(headers[name])
  }
  return size + varintSize(count)
}

function writeRecord(target: Buffer, at: number, record: BatchRecord, index: number, size: number): number {
  const { key, value, headers } = record
  let position = writeVarint(target, at, size)
  target[position++] = 0
  // All records of a batch have its timestamp.
  target[position++] = 0
  position = writeVarint(target, position, index)
  position = writeField(target, position, key)
  position = writeField(target, position, value)
  let count = 0
  for (const _ in headers) count++
  position = writeVarint(target, position, count)
  for (const name in headers) {
    position = writeField(target, position, name)
    position = writeField(target, position, headers[name])
  }
  return position
}

type Field = Uint8Array | string | null | undefined

function lengthOf(field: Uint8Array | string): number {
  return typeof field === 'string' ? Buffer.byteLength(field) : field.length
}

/** With the length before it. */
function fieldSize(field: Field): number {
  if (field === null || field === undefined) return 1
  const length = lengthOf(field)
  return varintSize(length) + length
}

function writeField(target: Buffer, at: number, field: Field): number {
  if (field === null || field === undefined) return writeVarint(target, at, -1)
  const start = writeVarint(target, at, lengthOf(field))
  if (typeof field === 'string') return start + target.write(field, start)
  target.set(field, start)
  return start + field.length
}

/** Of the zigzag code of a number that fits 31 bits. */
function varintSize(value: number): number {
  const code = ((value << 1) ^ (value >> 31)) >>> 0
  return code < 0x80 ? 1 : code < 0x4000 ? 2 : code < 0x200000 ? 3 : code < 0x10000000 ? 4 : 5
}

/** Gives the position after it. */
function writeVarint(target: Buffer, at: number, value: number): number {
  let code = ((value << 1) ^ (value >> 31)) >>> 0
  let position = at
  for (; code >= 0x80; code >>>= 7) target[position++] = (code & 0x7f) | 0x80
  target[position++] = code
  return position
}
