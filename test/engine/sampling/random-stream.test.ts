import assert from 'node:assert/strict'
import { test } from 'node:test'
import { randomStream } from '../../../engine/sampling/random-stream.ts'

const NAME = { seed: 1, key: 'instance', policy: 3 } as const

test('a draw depends on the name and the index alone, not on the order of draws', () => {
  const forward = randomStream(NAME)
  const backward = randomStream(NAME)
  const drawn = [0, 1, 2, 3].map(index => forward(index))
  assert.deepEqual([3, 2, 1, 0].map(index => backward(index)).reverse(), drawn)
  assert.equal(new Set(drawn).size, 4)
})

test('seed, key, policy version and sample each make another stream', () => {
  const first = (name: Parameters<typeof randomStream>[0]) => randomStream(name)(0)
  const draws = [
    first(NAME),
    first({ ...NAME, seed: 2 }),
    first({ ...NAME, key: 'instance2' }),
    first({ ...NAME, policy: 4 }),
    first({ ...NAME, policy: 'teacher' }),
    first({ ...NAME, sample: 1 }),
    first({ ...NAME, sample: 2 }),
    // Names whose parts run together are still two names.
    first({ seed: 11, key: '1', policy: 1 }),
    first({ seed: 1, key: '11', policy: 1 }),
  ]
  assert.equal(new Set(draws).size, draws.length)
  assert.equal(first({ ...NAME, sample: 0 }), first(NAME))
})

test('the draws are uniform: chi-square over 100 cells, and between neighbours', () => {
  const draw = randomStream(NAME)
  const count = 20_000
  const cells = new Array<number>(100).fill(0)
  let product = 0
  for (let index = 0; index < count; index++) {
    const value = draw(index)
    assert.ok(value >= 0 && value < 1)
    cells[Math.floor(value * 100)]!++
    product += (value - 0.5) * (draw(index + 1) - 0.5)
  }
  const expected = count / 100
  const chiSquare = cells.reduce((sum, n) => sum + (n - expected) ** 2 / expected, 0)
  // 99 degrees of freedom: beyond 148.2 once in a thousand seeds.
  assert.ok(chiSquare < 148.2, `chi-square ${chiSquare}`)
  // Correlation of neighbours: standard deviation 1/√n.
  assert.ok(Math.abs(product / count / (1 / 12)) < 4 / Math.sqrt(count))
})
