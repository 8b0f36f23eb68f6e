import assert from 'node:assert/strict'
import { test } from 'node:test'
import { llama3Scaling } from '../../../../engine/weights/gguf/llama3-scaling.ts'

const [THETA, HALF] = [500_000, 64]

/** As llama.cpp's converter computes them, in f64. */
function divisors({ factor = 8, low = 1, high = 4, context = 8192 } = {}): Float32Array {
  return Float32Array.from({ length: HALF }, (_, i) => {
    const turns = (context * THETA ** (-i / HALF)) / (2 * Math.PI)
    if (turns > high) return 1
    if (turns < low) return factor
    const smooth = (turns - low) / (high - low)
    return 1 / ((1 - smooth) / factor + smooth)
  })
}

test('the factor is that of the file, the rest as in all published models', () => {
  for (const factor of [8, 32]) {
    assert.deepEqual(llama3Scaling(divisors({ factor }), THETA), {
      rope_type: 'llama3',
      factor,
      low_freq_factor: 1,
      high_freq_factor: 4,
      original_max_position_embeddings: 8192,
    })
  }
  const named = llama3Scaling(divisors({ context: 4096 }), THETA, 4096)
  assert.equal(named?.original_max_position_embeddings, 4096)
})

test('divisors that follow from other numbers are not taken for those', () => {
  for (const other of [{ high: 8 }, { low: 2 }, { context: 4096 }]) {
    assert.equal(llama3Scaling(divisors(other), THETA), undefined, JSON.stringify(other))
  }
  assert.equal(llama3Scaling(divisors(), 10_000), undefined)
  assert.equal(llama3Scaling(new Float32Array(HALF), THETA), undefined)
  assert.equal(llama3Scaling(new Float32Array(HALF).fill(Number.NaN), THETA), undefined)
})
