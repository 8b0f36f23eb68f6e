/** The key-value pairs of a GGUF header. */
import { GraspError } from '../../../errors/grasp-error.ts'
import type { HeaderReader } from './header-reader.ts'

export type MetadataValue = number | bigint | boolean | string | readonly MetadataValue[]

const ARRAY = 9
/** Arrays of arrays are allowed; nothing uses them. */
const DEEPEST = 4

/** By the format's number of the type. */
const READERS: Readonly<Record<number, (reader: HeaderReader, what: string) => MetadataValue>> = {
  0: (reader, what) => reader.u8(what),
  1: (reader, what) => reader.i8(what),
  2: (reader, what) => reader.u16(what),
  3: (reader, what) => reader.i16(what),
  4: (reader, what) => reader.u32(what),
  5: (reader, what) => reader.i32(what),
  6: (reader, what) => reader.f32(what),
  7: (reader, what) => reader.u8(what) !== 0,
  8: (reader, what) => reader.string(what),
  10: (reader, what) => reader.u64(what),
  11: (reader, what) => reader.i64(what),
  12: (reader, what) => reader.f64(what),
}
const FLOAT32 = 6
/** Least bytes of an element; strings and arrays begin with a length. */
const BYTES: Readonly<Record<number, number>> = {
  0: 1,
  1: 1,
  2: 2,
  3: 2,
  4: 4,
  5: 4,
  6: 4,
  7: 1,
  8: 8,
  9: 12,
}

export class Metadata {
  readonly #path: string
  readonly #values = new Map<string, MetadataValue>()

  /** @param path names the file in errors. */
  constructor(path: string) {
    this.#path = path
  }

  /** @throws GraspError MODEL_INVALID naming the key. */
  static read(reader: HeaderReader, count: number): Metadata {
    const metadata = new Metadata(reader.path)
    for (let i = 0; i < count; i++) {
      const key = reader.string(`the key of metadata entry ${i + 1} of ${count}`)
      if (metadata.#values.has(key)) throw reader.damaged(`the metadata have ${key} twice`)
      metadata.#values.set(key, readValue(reader, reader.u32(key), key, 0))
    }
    return metadata
  }

  has(key: string): boolean {
    return this.#values.has(key)
  }

  get(key: string): MetadataValue | undefined {
    return this.#values.get(key)
  }

  string(key: string): string {
    return this.#required(key, this.optionalString(key))
  }
  optionalString(key: string): string | undefined {
    return this.#typed(key, 'a string', value => typeof value === 'string')
  }
  number(key: string): number {
    return this.#required(key, this.optionalNumber(key))
  }
  optionalNumber(key: string): number | undefined {
    return this.#typed(key, 'a number', value => typeof value === 'number')
  }
  /** Positive. */
  size(key: string): number {
    return this.#required(key, this.optionalSize(key))
  }
  optionalSize(key: string): number | undefined {
    return this.#typed(
      key,
      'a positive whole number',
      value => Number.isInteger(value) && (value as number) > 0,
    )
  }
  optionalBoolean(key: string): boolean | undefined {
    return this.#typed(key, 'true or false', value => typeof value === 'boolean')
  }
  strings(key: string): readonly string[] {
    const isStrings = (value: MetadataValue) =>
      Array.isArray(value) && value.every(item => typeof item === 'string')
    return this.#required(key, this.#typed<readonly string[]>(key, 'a list of strings', isStrings))
  }
  numbers(key: string): readonly number[] {
    const isNumbers = (value: MetadataValue) =>
      Array.isArray(value) && value.every(item => typeof item === 'number')
    return this.#required(key, this.#typed<readonly number[]>(key, 'a list of numbers', isNumbers))
  }

  invalid(what: string): GraspError {
    return new GraspError('MODEL_INVALID', `${this.#path} is wrong: ${what}`)
  }

  unsupported(what: string): GraspError {
    return new GraspError('MODEL_UNSUPPORTED', `${this.#path}: ${what}`)
  }

  #typed<T extends MetadataValue>(
    key: string,
    expected: string,
    matches: (value: MetadataValue) => boolean,
  ): T | undefined {
    const value = this.#values.get(key)
    if (value === undefined || matches(value)) return value as T | undefined
    throw this.invalid(`${key} is ${describe(value)}; expected ${expected}`)
  }

  #required<T>(key: string, value: T | undefined): T {
    if (value !== undefined) return value
    throw this.invalid(`its metadata lack ${key}`)
  }
}

function readValue(reader: HeaderReader, type: number, key: string, depth: number): MetadataValue {
  if (type === ARRAY) return readArray(reader, key, depth)
  const read = READERS[type]
  if (!read) throw reader.damaged(`${key} has the unknown value type ${type}`)
  const value = read(reader, key)
  return type === FLOAT32 && depth === 0 ? shortest(value as number) : value
}

function readArray(reader: HeaderReader, key: string, depth: number): MetadataValue {
  const type = reader.u32(key)
  if (type !== ARRAY && !READERS[type])
    throw reader.damaged(`${key} is a list of the unknown value type ${type}`)
  if (depth === DEEPEST) throw reader.damaged(`${key} nests lists more than ${DEEPEST} deep`)
  const count = reader.count(BYTES[type] ?? 8, key)
  const values = new Array<MetadataValue>(count)
  for (let i = 0; i < count; i++) values[i] = readValue(reader, type, key, depth + 1)
  return values
}

/** The number with the fewest digits that f32 rounds to the same value: what the model's author wrote, 1e-5. */
function shortest(value: number): number {
  for (let digits = 1; digits < 9; digits++) {
    const short = Number(value.toPrecision(digits))
    if (Math.fround(short) === value) return short
  }
  return value
}

function describe(value: MetadataValue): string {
  if (Array.isArray(value)) return `a list of ${value.length}`
  return typeof value === 'string' && value.length > 40
    ? `a string of ${value.length} characters`
    : JSON.stringify(typeof value === 'bigint' ? value.toString() : value)
}
