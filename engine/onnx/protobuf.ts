/** Writes the protobuf wire format: just enough for ONNX models. Fields are written in the order of the calls. */
const encoder = new TextEncoder()

export class ProtobufWriter {
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
    this.#reserve(value.length)
    this.#bytes.set(value, this.#length)
    this.#length += value.length
    return this
  }

  message(field: number, value: ProtobufWriter): this {
    return this.bytes(field, value.finish())
  }

  /** A view of what was written. */
  finish(): Uint8Array {
    return this.#bytes.subarray(0, this.#length)
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
