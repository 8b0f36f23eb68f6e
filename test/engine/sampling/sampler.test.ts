import assert from 'node:assert/strict'
import { readFile } from 'node:fs/promises'
import { test } from 'node:test'
import { randomStream } from '../../../engine/sampling/random-stream.ts'
import { Sampler, type SamplerOptions } from '../../../engine/sampling/sampler.ts'

const PLAIN: SamplerOptions = { temperature: 1, topK: 0, topP: 1, minP: 0 }
/** Logits of these probabilities, shifted by a constant that must not matter. */
const logitsOf = (probabilities: number[]) => Float32Array.from(probabilities, p => Math.log(p) + 3)
const PROBABILITIES = [0.05, 0.4, 0.1, 0.25, 0.2]
const LOGITS = logitsOf(PROBABILITIES)
const sampler = new Sampler(5)
const tokenAt = (uniform: number, options: SamplerOptions = PLAIN) =>
  sampler.draw(LOGITS, options, uniform).token

test('a uniform number picks the token in whose share it falls', () => {
  // Cumulative: 0.05, 0.45, 0.55, 0.8, 1
  const cases: [number, number][] = [
    [0, 0],
    [0.049, 0],
    [0.051, 1],
    [0.449, 1],
    [0.451, 2],
    [0.56, 3],
    [0.81, 4],
    [1 - 2 ** -53, 4],
  ]
  for (const [uniform, token] of cases) assert.equal(tokenAt(uniform), token, String(uniform))
})

test('greedy takes the greatest logit, the lowest id among equals, whatever the number', () => {
  const greedy = { ...PLAIN, temperature: 0 }
  assert.equal(tokenAt(0.99, greedy), 1)
  assert.equal(sampler.draw(Float32Array.of(1, 2, 2, 0, 2), greedy, 0.9).token, 1)
})

test('the lowest temperature there is shares out among the greatest alone', () => {
  const coldest = { ...PLAIN, temperature: Number.MIN_VALUE }
  const ofThree = (uniform: number) => sampler.draw(Float32Array.of(1, 2, 2, 0, 2), coldest, uniform).token
  assert.deepEqual([0.1, 0.5, 0.9].map(ofThree), [1, 2, 4])
  assert.equal(tokenAt(0.99, { ...coldest, topP: 0.5 }), 1)
})

test('the log-probability is that of temperature 1 over the whole vocabulary', () => {
  for (const options of [
    PLAIN,
    { temperature: 0, topK: 0, topP: 1, minP: 0 },
    { temperature: 0.3, topK: 2, topP: 0.5, minP: 0 },
  ]) {
    const { token, logp } = sampler.draw(LOGITS, options, 0.3)
    assert.ok(Math.abs(logp - Math.log(PROBABILITIES[token]!)) < 1e-6)
  }
})

test('large logits neither overflow nor lose the small ones', () => {
  const { token, logp } = sampler.draw(Float32Array.of(3000, 2999, -3000, 0, 0), PLAIN, 0.999999)
  assert.equal(token, 1)
  assert.ok(Math.abs(logp + Math.log(1 + Math.E)) < 1e-12)
})

test('a masked token is never drawn', () => {
  const masked = Float32Array.of(-Infinity, 0, -Infinity, 0, -Infinity)
  const tokens = [0, 0.3, 0.7, 1 - 2 ** -53].map(uniform => sampler.draw(masked, PLAIN, uniform).token)
  assert.deepEqual(tokens, [1, 1, 3, 3])
})

test('top-k keeps the k likeliest, the lowest ids among equals, and their shares', () => {
  // 1 (0.4) and 3 (0.25): shares 0.615 and 0.385, likeliest first.
  const two = { ...PLAIN, topK: 2 }
  assert.deepEqual(
    [0, 0.61, 0.62, 0.99].map(uniform => tokenAt(uniform, two)),
    [1, 1, 3, 3],
  )
  const equal = Float32Array.of(0, 1, 1, 1, 0)
  assert.deepEqual(
    [0, 0.49, 0.51, 0.99].map(u => sampler.draw(equal, two, u).token),
    [1, 1, 2, 2],
  )
  assert.equal(tokenAt(0.99, { ...PLAIN, topK: 1 }), 1)
  assert.equal(tokenAt(0.999, { ...PLAIN, topK: 50 }), 0)
})

test('top-p keeps the likeliest tokens that reach p together, at least one', () => {
  const kept = (topP: number, topK = 0) =>
    [
      ...new Set(
        Array.from({ length: 500 }, (_, i) => tokenAt(i / 500, { temperature: 1, topK, topP, minP: 0 })),
      ),
    ].sort()
  assert.deepEqual(kept(0.01), [1])
  assert.deepEqual(kept(0.39), [1])
  assert.deepEqual(kept(0.5), [1, 3])
  assert.deepEqual(kept(0.84), [1, 3, 4])
  assert.deepEqual(kept(0.9), [1, 2, 3, 4])
  // Within the three that top-k leaves (0.85), 1 and 3 (0.65) reach 0.75 of it.
  assert.deepEqual(kept(0.75, 3), [1, 3])
})

test('min-p keeps what is at least so likely as that part of the likeliest', () => {
  const kept = (minP: number, temperature = 1) =>
    [
      ...new Set(Array.from({ length: 500 }, (_, i) => tokenAt(i / 500, { ...PLAIN, temperature, minP }))),
    ].sort()
  assert.deepEqual(kept(0.12), [0, 1, 2, 3, 4])
  assert.deepEqual(kept(0.13), [1, 2, 3, 4])
  assert.deepEqual(kept(0.51), [1, 3])
  assert.deepEqual(kept(1), [1])
  // At temperature 2 the least has √(0.05 / 0.4) = 0.35 of the greatest.
  assert.deepEqual(kept(0.35, 2), [0, 1, 2, 3, 4])
  assert.deepEqual(kept(0.36, 2), [1, 2, 3, 4])
})

test("temperature, top-k, top-p and min-p leave the probabilities that transformers' warpers leave", async () => {
  const file = new URL('../../golden/warpers.json', import.meta.url)
  const cases: (SamplerOptions & { logits: number[]; probabilities: number[] })[] = JSON.parse(
    await readFile(file, 'utf8'),
  )
  assert.equal(cases.length, 22)
  for (const { logits, probabilities, ...options } of cases) {
    const drawn = new Sampler(logits.length)
    const counts = new Array<number>(logits.length).fill(0)
    const grid = 4000
    for (let i = 0; i < grid; i++) {
      counts[drawn.draw(Float32Array.from(logits), options, (i + 0.5) / grid).token]!++
    }
    const what = JSON.stringify(options)
    for (const [id, count] of counts.entries()) {
      // A share of the uniform numbers, up to the grid.
      assert.ok(Math.abs(count / grid - probabilities[id]!) <= 1 / grid, `${what}: ${count} of token ${id}`)
      if (probabilities[id] === 0) assert.equal(count, 0, what)
    }
  }
})

test('top-k and top-p find tokens far below the greatest', () => {
  const steep = new Sampler(40)
  const logits = Float32Array.from({ length: 40 }, (_, id) => -3 * id)
  const last = (topK: number) =>
    steep.draw(logits, { temperature: 50, topK, topP: 1, minP: 0 }, 1 - 2 ** -53).token
  assert.equal(last(30), 29)
  const cold = (topK: number) =>
    steep.draw(logits, { temperature: 1, topK, topP: 1 - 1e-15, minP: 0 }, 1 - 2 ** -53).token
  assert.ok(cold(0) > 8)
})

test('samples follow the distribution: chi-square at temperatures 1 and 0.5', () => {
  for (const temperature of [1, 0.5]) {
    const draw = randomStream({ seed: 7, key: `chi ${temperature}`, policy: 0 })
    const counts = new Array<number>(5).fill(0)
    const total = 20_000
    for (let i = 0; i < total; i++) counts[tokenAt(draw(i), { ...PLAIN, temperature })]!++
    const weights = PROBABILITIES.map(p => p ** (1 / temperature))
    const sum = weights.reduce((a, b) => a + b)
    const chiSquare = counts.reduce((acc, count, id) => {
      const expected = (total * weights[id]!) / sum
      return acc + (count - expected) ** 2 / expected
    }, 0)
    // 4 degrees of freedom: beyond 18.5 once in a thousand seeds.
    assert.ok(chiSquare < 18.5, `chi-square ${chiSquare} at temperature ${temperature}`)
  }
})

test('logits that are no numbers are refused', () => {
  assert.throws(
    () => sampler.draw(Float32Array.of(0, Number.NaN, 0, 0, 0), PLAIN, 0.5),
    /token 1 is not a number/,
  )
  assert.throws(
    () => sampler.draw(Float32Array.of(Number.NaN, 0, 0, 0, 1), { ...PLAIN, temperature: 0 }, 0.5),
    /token 0 is not a number/,
  )
  assert.throws(() => sampler.draw(new Float32Array(5).fill(-Infinity), PLAIN, 0.5), /diverged/)
  assert.throws(() => sampler.draw(Float32Array.of(0, Infinity, 0, 0, 0), PLAIN, 0.5), /diverged/)
})
