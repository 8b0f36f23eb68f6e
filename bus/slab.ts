/** Larger pieces have memory of their own. */
const SLAB = 256 << 10

let slab = Buffer.allocUnsafeSlow(SLAB)
let used = 0

/**
 * Memory for something short-lived, not cleared. Small pieces share theirs: an ArrayBuffer costs some microseconds
 * to make and to collect, and lmdb-js looks up the address of each new one.
 */
export function allocate(size: number): Buffer {
  if (size > SLAB >> 2) return Buffer.allocUnsafeSlow(size)
  if (used + size > SLAB) {
    slab = Buffer.allocUnsafeSlow(SLAB)
    used = 0
  }
  const piece = slab.subarray(used, used + size)
  used += size
  return piece
}
