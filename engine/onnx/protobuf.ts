/**
 * Writes the protobuf wire format: just enough for ONNX models. Fields are written in the order of the calls. Large
 * values are copied once, by `finish`: until then they must not change.
 */
const encoder = new TextEncoder()

/** Bytes from which on a value counts as large. */
const LARGE = 2 ** 16

export class ProtobufWriter {
  /** What comes before `#bytes`. */
  readonly #written: Uint8Array[] = []
  #bytes = new Uint8Array(256)
  #length = 0

  /** A base-128 integer; negative numbers take ten bytes, as two's complement in 64 bits. */
  int(field: number, value: number): this {
    this.#tag(field, 0)
    this.#varint(value)
    return this
  }

  /** An IEEE 754 single. */
  float(field: number, value: number): this {
    this.#tag(field, 5)
    this.#reserve(4)
    new DataView(this.#bytes.buffer).setFloat32(this.#length, value, true)
    this.#length += 4
    return this
  }

  string(field: number, value: string): this {
    return this.bytes(field, encoder.encode(value))
  }

  bytes(field: number, value: Uint8Array): this {
    this.#tag(field, 2)
    this.#varint(value.length)
    this.#append(value)
    return this
  }

  message(field: number, value: ProtobufWriter): this {
    const pieces = value.#pieces()
    this.#tag(field, 2)
    this.#varint(pieces.reduce((sum, { length }) => sum + length, 0))
    for (const piece of pieces) this.#append(piece)
    return this
  }

  /** What was written, in an array of its own. */
  finish(): Uint8Array {
    const pieces = this.#pieces()
    const all = new Uint8Array(pieces.reduce((sum, { length }) => sum + length, 0))
    let at = 0
    for (const piece of pieces) {
      all.set(piece, at)
      at += piece.length
    }
    return all
  }

  #pieces(): readonly Uint8Array[] {
    return [...this.#written, this.#bytes.subarray(0, this.#length)]
  }

  #append(value: Uint8Array): void {
    if (value.length >= LARGE) {
      this.#written.push(this.#bytes.subarray(0, this.#length), value)
      this.#bytes = new Uint8Array(256)
      this.#length = 0
      return
    }
    this.#reserve(value.length)
    this.#bytes.set(value, this.#length)
    this.#length += value.length
  }

  #tag(field: number, wireType: number): void {
    this.#varint(field * 8 + wireType)
  }

  #varint(value: number): void {
    let rest = BigInt.asUintN(64, BigInt(value))
    this.#reserve(10)
    while (rest >= 128n) {
      this.#bytes[this.#length++] = Number(rest & 127n) | 128
      rest >>= 7n
    }
    this.#bytes[this.#length++] = Number(rest)
  }

  #reserve(count: number): void {
    const needed = this.#length + count
    if (needed <= this.#bytes.length) return
    const grown = new Uint8Array(Math.max(needed, this.#bytes.length * 2))
    grown.set(this.#bytes.subarray(0, this.#length))
    this.#bytes = grown
  }
}
