/** A binary heap of numbers, the least on top. */
export class MinHeap {
  #keys: Float64Array
  #size = 0

  /** @param capacity room to begin with; it grows. */
  constructor(capacity: number) {
    this.#keys = new Float64Array(Math.max(capacity, 4))
  }

  get size(): number {
    return this.#size
  }

  push(key: number): void {
    if (this.#size === this.#keys.length) {
      const grown = new Float64Array(2 * this.#size)
      grown.set(this.#keys)
      this.#keys = grown
    }
    const keys = this.#keys
    let at = this.#size++
    while (at > 0) {
      const parent = (at - 1) >> 1
      if (keys[parent]! <= key) break
      keys[at] = keys[parent]!
      at = parent
    }
    keys[at] = key
  }

  /** The least; the heap must not be empty. */
  pop(): number {
    const keys = this.#keys
    const least = keys[0]!
    const size = --this.#size
    const last = keys[size]!
    let at = 0
    for (let child = 1; child < size; child = 2 * at + 1) {
      if (child + 1 < size && keys[child + 1]! < keys[child]!) child++
      if (keys[child]! >= last) break
      keys[at] = keys[child]!
      at = child
    }
    keys[at] = last
    return least
  }
}
