import assert from 'node:assert/strict'

/** Greatest difference, relative to the greatest expected magnitude. */
export function relativeError(got: ArrayLike<number>, expected: ArrayLike<number>): number {
  assert.equal(got.length, expected.length)
  let difference = 0
  let scale = 0
  for (let i = 0; i < expected.length; i++) {
    if (Number.isNaN(got[i])) return Number.NaN
    difference = Math.max(difference, Math.abs(got[i]! - expected[i]!))
    scale = Math.max(scale, Math.abs(expected[i]!))
  }
  return scale === 0 ? difference : difference / scale
}

export function assertClose(
  what: string,
  got: ArrayLike<number>,
  expected: ArrayLike<number>,
  tolerance = 1e-4,
): void {
  const error = relativeError(got, expected)
  assert(error <= tolerance, `${what}: relative error ${error}, at most ${tolerance} expected`)
}
