/** Reads the little-endian values of a GGUF header one after the other, through a window of the file. */
import { readSync } from 'node:fs'
import { describeError, GraspError } from '../../../errors/grasp-error.ts'

const WINDOW = 1024 * 1024

export class HeaderReader {
  readonly path: string
  readonly fileSize: number
  readonly #file: number
  /** Bytes of the file from `#start` on, of which `#length` are there. */
  #bytes = new Uint8Array(0)
  #view = new DataView(this.#bytes.buffer)
  #start = 0
  #length = 0
  #position = 0

  /** @param file an open file's descriptor. */
  constructor(path: string, file: number, fileSize: number) {
    this.path = path
    this.#file = file
    this.fileSize = fileSize
  }

  /** Bytes read so far. */
  get position(): number {
    return this.#position
  }

  // In the methods, `what` names what is being read, for errors.

  u8(what: string): number {
    return this.#read(1, what, (view, at) => view.getUint8(at))
  }
  i8(what: string): number {
    return this.#read(1, what, (view, at) => view.getInt8(at))
  }
  u16(what: string): number {
    return this.#read(2, what, (view, at) => view.getUint16(at, true))
  }
  i16(what: string): number {
    return this.#read(2, what, (view, at) => view.getInt16(at, true))
  }
  u32(what: string): number {
    return this.#read(4, what, (view, at) => view.getUint32(at, true))
  }
  i32(what: string): number {
    return this.#read(4, what, (view, at) => view.getInt32(at, true))
  }
  f32(what: string): number {
    return this.#read(4, what, (view, at) => view.getFloat32(at, true))
  }
  f64(what: string): number {
    return this.#read(8, what, (view, at) => view.getFloat64(at, true))
  }
  /** A number where it is exact. */
  u64(what: string): number | bigint {
    return narrow(this.#read(8, what, (view, at) => view.getBigUint64(at, true)))
  }
  i64(what: string): number | bigint {
    return narrow(this.#read(8, what, (view, at) => view.getBigInt64(at, true)))
  }

  string(what: string): string {
    const length = this.count(1, what)
    const at = this.#take(length, what)
    return new TextDecoder('utf-8', { ignoreBOM: true }).decode(this.#bytes.subarray(at, at + length))
  }

  /** A u64 that says how many things follow, each of which takes at least `least` bytes. */
  count(least: number, what: string): number {
    const count = this.u64(what)
    if (count > (this.fileSize - this.#position) / least) {
      throw this.damaged(`${what} claims a length of ${count}, more than the rest of the file holds`)
    }
    return Number(count)
  }

  damaged(what: string): GraspError {
    return new GraspError('MODEL_INVALID', `${this.path} is damaged: ${what}. Fetch or copy the file again.`)
  }

  #read<T>(length: number, what: string, read: (view: DataView, at: number) => T): T {
    const at = this.#take(length, what)
    return read(this.#view, at)
  }

  /** Where in the window the next `length` bytes are. */
  #take(length: number, what: string): number {
    if (this.#position + length > this.fileSize) {
      throw this.damaged(`it is cut off: its ${this.fileSize} bytes end within ${what}`)
    }
    if (this.#position + length > this.#start + this.#length) this.#fill(length)
    const at = this.#position - this.#start
    this.#position += length
    return at
  }

  #fill(least: number): void {
    const length = Math.min(Math.max(least, WINDOW), this.fileSize - this.#position)
    if (this.#bytes.length < length) {
      this.#bytes = new Uint8Array(length)
      this.#view = new DataView(this.#bytes.buffer)
    }
    this.#start = this.#position
    this.#length = 0
    while (this.#length < length) {
      const read = this.#readFile(this.#length, length - this.#length)
      if (read === 0) throw this.damaged('it was cut off while it was read')
      this.#length += read
    }
  }

  #readFile(offset: number, length: number): number {
    try {
      return readSync(this.#file, this.#bytes, offset, length, this.#start + offset)
    } catch (cause) {
      throw new GraspError('MODEL_INVALID', `${this.path} cannot be read: ${describeError(cause)}`, { cause })
    }
  }
}

function narrow(value: bigint): number | bigint {
  const number = Number(value)
  return Number.isSafeInteger(number) ? number : value
}
