/**
 * The header of a GGUF file: magic, version, metadata, and where each tensor's bytes are.
 * Format: https://github.com/ggml-org/ggml/blob/master/docs/gguf.md
 */
import { GraspError } from '../../../errors/grasp-error.ts'
import { HeaderReader } from './header-reader.ts'
import { Metadata } from './metadata.ts'
import { TENSOR_TYPES, type TensorType, unreadTypeName } from './tensor-types.ts'

/** `GGUF`, read as a little-endian u32. */
const MAGIC = 0x46554747
const DEFAULT_ALIGNMENT = 32
/** The format's own limit. */
const MOST_DIMENSIONS = 4
/** Least bytes of a metadata entry (empty key, type, one byte) and of a tensor's entry. */
const LEAST_ENTRY = 13
const LEAST_TENSOR = 24

export interface GgufTensor {
  readonly type: TensorType
  /** Outermost first, as Hugging Face has it; the file has it the other way round. */
  readonly shape: readonly number[]
  /** Byte range, from the start of the file. */
  readonly start: number
  readonly end: number
}

export interface GgufHeader {
  readonly path: string
  readonly metadata: Metadata
  readonly tensors: ReadonlyMap<string, GgufTensor>
}

interface Entry {
  readonly type: TensorType
  readonly shape: readonly number[]
  readonly offset: number
}

/**
 * @param file an open file's descriptor.
 * @throws GraspError MODEL_INVALID naming the file and the tensor or key, MODEL_UNSUPPORTED for what is not read.
 */
export function readGgufHeader(path: string, file: number, fileSize: number): GgufHeader {
  const reader = new HeaderReader(path, file, fileSize)
  checkStart(reader)
  const tensorCount = reader.count(LEAST_TENSOR, 'the number of tensors')
  const metadata = Metadata.read(reader, reader.count(LEAST_ENTRY, 'the number of metadata entries'))
  const parts = metadata.optionalNumber('split.count') ?? 1
  if (parts > 1) {
    throw metadata.unsupported(
      `it is one of ${parts} files. Join them first: llama-gguf-split --merge FIRST OUT.`,
    )
  }
  const alignment = metadata.optionalSize('general.alignment') ?? DEFAULT_ALIGNMENT
  if (alignment % 8 !== 0)
    throw metadata.invalid(`general.alignment is ${alignment}; expected a multiple of 8`)

  const entries = new Map<string, Entry>()
  for (let i = 0; i < tensorCount; i++) {
    const name = reader.string(`the name of tensor ${i + 1} of ${tensorCount}`)
    if (entries.has(name)) throw reader.damaged(`it has the tensor ${name} twice`)
    entries.set(name, readEntry(reader, name, alignment))
  }
  const dataStart = Math.ceil(reader.position / alignment) * alignment
  const tensors = new Map<string, GgufTensor>()
  for (const [name, { type, shape, offset }] of entries) {
    const start = dataStart + offset
    tensors.set(name, { type, shape, start, end: start + byteLength(type, shape) })
  }
  checkRanges(reader, tensors)
  return { path, metadata, tensors }
}

function checkStart(reader: HeaderReader): void {
  if (reader.fileSize < 4 || reader.u32('its magic number') !== MAGIC) {
    throw new GraspError(
      'MODEL_INVALID',
      `${reader.path} is no GGUF file: it does not begin with the letters GGUF. A model is a Hugging Face directory or a GGUF file.`,
    )
  }
  const version = reader.u32('its version')
  if (version === 2 || version === 3) return
  // Read the other way round, a small number is a large one.
  const what = version > 0xffff ? 'big-endian' : `of version ${version}`
  throw new GraspError(
    'MODEL_UNSUPPORTED',
    `${reader.path} is ${what}; read are little-endian files of versions 2 and 3. Convert the model again with llama.cpp.`,
  )
}

function readEntry(reader: HeaderReader, name: string, alignment: number): Entry {
  const what = `the entry of tensor ${name}`
  const dimensions = reader.u32(what)
  if (dimensions === 0 || dimensions > MOST_DIMENSIONS) {
    throw reader.damaged(`${name} has ${dimensions} dimensions; expected 1 to ${MOST_DIMENSIONS}`)
  }
  const shape: number[] = []
  for (let i = 0; i < dimensions; i++) {
    const length = reader.u64(what)
    if (typeof length !== 'number' || length === 0)
      throw reader.damaged(`${name} has a dimension of length ${length}`)
    shape.unshift(length)
  }
  const type = readType(reader, name, what)
  const row = shape.at(-1)!
  if (row % type.block !== 0) {
    throw reader.damaged(
      `${name} [${shape.join(', ')}] is ${type.name}, whose blocks hold ${type.block} values, but its rows have ${row}`,
    )
  }
  const offset = reader.u64(what)
  if (typeof offset !== 'number' || offset % alignment !== 0) {
    throw reader.damaged(`${name} begins at byte ${offset} of the data; expected a multiple of ${alignment}`)
  }
  return { type, shape, offset }
}

function readType(reader: HeaderReader, name: string, what: string): TensorType {
  const number = reader.u32(what)
  const type = TENSOR_TYPES.get(number)
  if (type) return type
  const known = unreadTypeName(number)
  if (known === undefined) throw reader.damaged(`${name} has the unknown tensor type ${number}`)
  const readable = [...TENSOR_TYPES.values()].map(({ name }) => name).join(', ')
  throw new GraspError(
    'MODEL_UNSUPPORTED',
    `${reader.path}: ${name} has the tensor type ${known}; read are ${readable}. Take the model in another quantisation.`,
  )
}

function byteLength(type: TensorType, shape: readonly number[]): number {
  return (shape.reduce((product, length) => product * length, 1) / type.block) * type.bytes
}

function checkRanges(reader: HeaderReader, tensors: ReadonlyMap<string, GgufTensor>): void {
  let [position, previous] = [0, '']
  for (const [name, { type, shape, start, end }] of [...tensors].sort(([, a], [, b]) => a.start - b.start)) {
    if (end > reader.fileSize) {
      throw reader.damaged(
        `${name} (${type.name} [${shape.join(', ')}]) takes the bytes ${start}–${end}, but the file has ${reader.fileSize}`,
      )
    }
    if (start < position) throw reader.damaged(`${name} overlaps ${previous}`)
    ;[position, previous] = [end, name]
  }
}
