/** Writes GGUF files of any content, right or wrong, for the tests of the reader. */
import { writeFile } from 'node:fs/promises'

/** The format's numbers of its value types. */
const TYPES = {
  u8: 0,
  i8: 1,
  u16: 2,
  i16: 3,
  u32: 4,
  i32: 5,
  f32: 6,
  bool: 7,
  string: 8,
  u64: 10,
  i64: 11,
  f64: 12,
}
type Kind = keyof typeof TYPES

export type Typed =
  | { readonly kind: Kind; readonly value: number | bigint | boolean | string }
  | { readonly list: Kind; readonly values: readonly (number | bigint | boolean | string)[] }
  | { readonly raw: { readonly type: number; readonly bytes: Uint8Array } }

export const u32 = (value: number): Typed => ({ kind: 'u32', value })
export const f32 = (value: number): Typed => ({ kind: 'f32', value })
export const bool = (value: boolean): Typed => ({ kind: 'bool', value })
export const text = (value: string): Typed => ({ kind: 'string', value })
export const list = (kind: Kind, values: readonly (number | string | boolean)[]): Typed => ({
  list: kind,
  values,
})

export interface GgufTensorData {
  readonly name: string
  /** The format's number. */
  readonly type: number
  /** Outermost first. */
  readonly shape: readonly number[]
  readonly bytes: Uint8Array
  /** Where it claims to be, from the start of the data. */
  readonly offset?: number
}

export interface GgufContent {
  readonly metadata: Readonly<Record<string, Typed>> | readonly (readonly [string, Typed])[]
  readonly tensors?: readonly GgufTensorData[]
  readonly magic?: string
  readonly version?: number
  /** What the header claims, where it is not what is there. */
  readonly tensorCount?: number
  readonly metadataCount?: number
}

export async function writeGguf(path: string, content: GgufContent): Promise<void> {
  await writeFile(path, ggufBytes(content))
}

export function ggufBytes({
  metadata,
  tensors = [],
  magic = 'GGUF',
  version = 3,
  ...counts
}: GgufContent): Buffer {
  const entries: readonly (readonly [string, Typed])[] = Array.isArray(metadata)
    ? metadata
    : Object.entries(metadata)
  const aligned = entries.find(([key]) => key === 'general.alignment')?.[1]
  const alignment = aligned && 'kind' in aligned ? Number(aligned.value) : 32
  const data: Buffer[] = []
  let size = 0
  const infos = tensors.map(({ name, type, shape, bytes, offset }) => {
    const padding = -size & (alignment - 1)
    data.push(Buffer.alloc(padding), Buffer.from(bytes))
    const start = size + padding
    size = start + bytes.length
    const dimensions = [...shape].reverse().map(length => scalar('u64', length))
    return [
      string(name),
      scalar('u32', shape.length),
      ...dimensions,
      scalar('u32', type),
      scalar('u64', offset ?? start),
    ]
  })
  const header = Buffer.concat([
    Buffer.from(magic, 'latin1'),
    scalar('u32', version),
    scalar('u64', counts.tensorCount ?? tensors.length),
    scalar('u64', counts.metadataCount ?? entries.length),
    ...entries.flatMap(([key, value]) => [string(key), typed(value)]),
    ...infos.flat(),
  ])
  return Buffer.concat([header, Buffer.alloc(-header.length & (alignment - 1)), ...data])
}

function typed(value: Typed): Buffer {
  if ('raw' in value) return Buffer.concat([scalar('u32', value.raw.type), Buffer.from(value.raw.bytes)])
  if ('kind' in value)
    return Buffer.concat([scalar('u32', TYPES[value.kind]), scalar(value.kind, value.value)])
  const head = [scalar('u32', 9), scalar('u32', TYPES[value.list]), scalar('u64', value.values.length)]
  return Buffer.concat([...head, ...value.values.map(item => scalar(value.list, item))])
}

function string(value: string): Buffer {
  const bytes = Buffer.from(value)
  return Buffer.concat([scalar('u64', bytes.length), bytes])
}

function scalar(kind: Kind, value: number | bigint | boolean | string): Buffer {
  if (kind === 'string') return string(value as string)
  const bytes = Buffer.alloc(8)
  const number = Number(value)
  switch (kind) {
    case 'u8':
    case 'bool':
      return bytes.subarray(0, bytes.writeUInt8(number))
    case 'i8':
      return bytes.subarray(0, bytes.writeInt8(number))
    case 'u16':
      return bytes.subarray(0, bytes.writeUInt16LE(number))
    case 'i16':
      return bytes.subarray(0, bytes.writeInt16LE(number))
    case 'u32':
      return bytes.subarray(0, bytes.writeUInt32LE(number))
    case 'i32':
      return bytes.subarray(0, bytes.writeInt32LE(number))
    case 'f32':
      return bytes.subarray(0, bytes.writeFloatLE(number))
    case 'u64':
      return bytes.subarray(0, bytes.writeBigUInt64LE(BigInt(value)))
    case 'i64':
      return bytes.subarray(0, bytes.writeBigInt64LE(BigInt(value)))
    case 'f64':
      return bytes.subarray(0, bytes.writeDoubleLE(number))
  }
}
