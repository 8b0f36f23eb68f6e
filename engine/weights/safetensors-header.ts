/**
 * The header of a safetensors file: an 8-byte little-endian length, then JSON that maps each tensor's name to
 * its dtype, shape and byte range in the rest of the file.
 * Format: https://github.com/huggingface/safetensors#format
 */
import { z } from 'zod'
import { describeError, GraspError } from '../../errors/grasp-error.ts'
import { isPointer, LFS_POINTER } from './lfs-pointer.ts'

/** The reference implementation refuses longer headers too. */
const LONGEST_HEADER = 100_000_000

/** Bits of one element. */
const BITS: ReadonlyMap<string, number> = new Map([
  ['F4', 4],
  ...['F6_E2M3', 'F6_E3M2'].map(dtype => [dtype, 6] as const),
  ...['BOOL', 'U8', 'I8', 'F8_E4M3', 'F8_E5M2', 'F8_E8M0'].map(dtype => [dtype, 8] as const),
  ...['U16', 'I16', 'F16', 'BF16'].map(dtype => [dtype, 16] as const),
  ...['U32', 'I32', 'F32'].map(dtype => [dtype, 32] as const),
  ...['U64', 'I64', 'F64', 'C64'].map(dtype => [dtype, 64] as const),
])

export interface TensorEntry {
  readonly dtype: string
  readonly shape: readonly number[]
  /** Byte range, from the start of the file. */
  readonly start: number
  readonly end: number
}

export interface SafetensorsHeader {
  readonly tensors: ReadonlyMap<string, TensorEntry>
  readonly metadata: Readonly<Record<string, string>>
}

const natural = z.number().int().nonnegative()
const entrySchema = z.object({
  dtype: z.string(),
  shape: z.array(natural),
  data_offsets: z.tuple([natural, natural]),
})
const metadataSchema = z.record(z.string(), z.string())

/** Length of the JSON part, from the file's first 8 bytes. */
export function headerLength(path: string, first: Uint8Array, fileSize: number): number {
  if (first.length < 8) throw invalid(path, `it has ${fileSize} bytes, too few for a safetensors header`)
  // No header begins so: these bytes would be a length of 2.3e18.
  if (new TextDecoder().decode(first.subarray(0, 8)) === LFS_POINTER.slice(0, 8)) throw isPointer(path)
  const view = new DataView(first.buffer, first.byteOffset, 8)
  const length = view.getBigUint64(0, true)
  if (length > BigInt(LONGEST_HEADER))
    throw invalid(path, `its header claims ${length} bytes; this is not a safetensors file`)
  if (8 + Number(length) > fileSize) {
    throw invalid(path, `its header claims ${length} bytes, but the file ends after ${fileSize}`)
  }
  return Number(length)
}

/**
 * Checks that every tensor's bytes equal shape × dtype, and that the ranges cover the file without gaps or
 * overlaps.
 * @throws GraspError MODEL_INVALID naming the file and the tensor.
 */
export function parseHeader(path: string, json: Uint8Array, fileSize: number): SafetensorsHeader {
  const dataStart = 8 + json.length
  let parsed: unknown
  try {
    parsed = JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(json))
  } catch (cause) {
    throw invalid(path, `its header is not JSON: ${describeError(cause)}`, cause)
  }
  if (typeof parsed !== 'object' || parsed === null || Array.isArray(parsed)) {
    throw invalid(path, 'its header is not a JSON object')
  }
  const { __metadata__: metadata = {}, ...rest } = parsed as Record<string, unknown>
  const tensors = new Map<string, TensorEntry>()
  for (const [name, value] of Object.entries(rest))
    tensors.set(name, parseEntry(path, name, value, dataStart))
  checkCoverage(path, tensors, dataStart, fileSize)
  const checkedMetadata = metadataSchema.safeParse(metadata)
  if (!checkedMetadata.success) throw invalid(path, 'its __metadata__ is not a map of strings')
  return { tensors, metadata: checkedMetadata.data }
}

function parseEntry(path: string, name: string, value: unknown, dataStart: number): TensorEntry {
  const entry = entrySchema.safeParse(value)
  if (!entry.success) throw invalid(path, `the entry of ${name} is wrong: ${z.prettifyError(entry.error)}`)
  const { dtype, shape, data_offsets: offsets } = entry.data
  const bits = BITS.get(dtype)
  if (bits === undefined) throw invalid(path, `${name} has the unknown dtype ${dtype}`)
  const expected = shape.reduce((product, length) => product * length, bits) / 8
  if (offsets[1] - offsets[0] !== expected) {
    throw invalid(
      path,
      `${name} is ${dtype} [${shape.join(', ')}], which takes ${expected} bytes, but its byte range ` +
        `${offsets[0]}–${offsets[1]} holds ${offsets[1] - offsets[0]}`,
    )
  }
  return { dtype, shape, start: dataStart + offsets[0], end: dataStart + offsets[1] }
}

function checkCoverage(
  path: string,
  tensors: ReadonlyMap<string, TensorEntry>,
  dataStart: number,
  fileSize: number,
): void {
  let position = dataStart
  let previous = 'the header'
  const ordered = [...tensors].sort(([, a], [, b]) => a.start - b.start || a.end - b.end)
  for (const [name, { start, end }] of ordered) {
    if (start < position) throw invalid(path, `${name} overlaps ${previous}`)
    if (start > position) throw invalid(path, `${start - position} bytes before ${name} belong to no tensor`)
    position = end
    previous = name
  }
  if (position > fileSize) {
    throw invalid(path, `it is cut off: its tensors need ${position} bytes, the file has ${fileSize}`)
  }
  if (position < fileSize) throw invalid(path, `${fileSize - position} bytes after the last tensor`)
}

function invalid(path: string, what: string, cause?: unknown): GraspError {
  return new GraspError(
    'MODEL_INVALID',
    `${path} is damaged: ${what}. Fetch or copy the file again.`,
    cause === undefined ? undefined : { cause },
  )
}
