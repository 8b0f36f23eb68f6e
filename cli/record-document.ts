/** A record of the log as a JSON document. */
import type { Delivery } from '../bus/port.ts'

/** Text payloads (a file's item in a dead letter) show their beginning. */
const PREVIEW = 120

function bytes(value: Uint8Array, raw: boolean): unknown {
  if (raw) return Buffer.from(value.buffer, value.byteOffset, value.length).toString('base64')
  const head = Buffer.from(value.subarray(0, PREVIEW)).toString()
  const isText = /^[[{"]/.test(head) && !/[\uFFFD\x00-\x08]/.test(head.slice(0, -4))
  return { bytes: value.length, ...(isText ? { start: head } : {}) }
}

/** A value as JSON: with `raw` bytes are base64, otherwise only their number. */
export function plain(value: unknown, raw: boolean): unknown {
  if (value instanceof Uint8Array) return bytes(value, raw)
  if (ArrayBuffer.isView(value)) return Array.from(value as unknown as ArrayLike<number>)
  if (Array.isArray(value)) return value.map(entry => plain(entry, raw))
  if (value === null || typeof value !== 'object') return value
  return Object.fromEntries(Object.entries(value).map(([key, entry]) => [key, plain(entry, raw)]))
}

/** With `raw` bytes are base64, otherwise only their number; undecodable records carry `error` in place of `value`. */
export function recordDocument(record: Delivery, raw: boolean): Record<string, unknown> {
  const { topic, partition, offset, key, timestamp, error } = record
  const place = { topic, partition, offset, time: new Date(timestamp).toISOString(), key }
  if (error === undefined) return { ...place, value: plain(record.value, raw) }
  return {
    ...place,
    error: { code: error.code, message: error.message },
    payload: bytes(record.payload, raw),
  }
}
