import assert from 'node:assert/strict'
import { test } from 'node:test'
import { engineMemory } from '../../../engine/memory/engine-memory.ts'
import { fitOf, savings } from '../../../engine/memory/fit.ts'
import { knownModels } from '../../../engine/memory/known-models.ts'
import { ASSUMED, bytesFor, largestModels, USES } from '../../../engine/memory/largest-model.ts'
import { DEFAULT_SETTINGS } from '../../../engine/memory/settings.ts'

const GIB = 2 ** 30
const { config: smol } = knownModels()[0]!

test('the longest sequences that fit are those after which nothing more does', () => {
  const free = 9 * GIB
  const { longest } = fitOf(smol, DEFAULT_SETTINGS, free)
  const bytes = (length: number) => engineMemory(smol, DEFAULT_SETTINGS)(length).training.bytes
  assert.ok(longest.training > 0 && longest.training < smol.contextLength)
  assert.ok(bytes(longest.training) <= free && bytes(longest.training + 64) > free)
})

test('a memory that is too small has no length, and a large one the whole context', () => {
  assert.deepEqual(fitOf(smol, DEFAULT_SETTINGS, GIB / 2).longest, { training: 0, decoding: 0 })
  assert.deepEqual(fitOf(smol, DEFAULT_SETTINGS, 1000 * GIB).longest, { training: 8192, decoding: 8192 })
})

test('what is suggested saves what it says, and is not there already', () => {
  const found = savings(smol, DEFAULT_SETTINGS, 1024)
  const needed = engineMemory(smol, DEFAULT_SETTINGS)(1024).training.bytes
  const bf16 = found.find(({ setting }) => setting === 'training.optimiserState: bf16')
  const lowered = { ...DEFAULT_SETTINGS, optimiserState: 'bf16' } as const
  assert.equal(bf16?.bytes, needed - engineMemory(smol, lowered)(1024).training.bytes)
  assert.ok(!savings(smol, lowered, 1024).some(({ setting }) => setting.includes('optimiserState')))
  assert.deepEqual(
    found.map(({ bytes }) => bytes).toSorted((a, b) => b - a),
    found.map(({ bytes }) => bytes),
  )
})

test('the largest models fit, and there is none larger among the well-known that does', () => {
  const free = 20 * GIB
  for (const { use, parameters, example } of largestModels(free)) {
    assert.ok(example && example.bytes <= free && parameters >= 0.99 * example.parameters, use)
    const larger = knownModels().filter(({ config }) => bytesFor(config, use) <= free)
    assert.ok(larger.some(({ name }) => name === example.name))
  }
  assert.deepEqual(
    largestModels(GIB / 8).map(({ parameters, example }) => [parameters, example]),
    USES.map(() => [0, undefined]),
  )
  assert.ok(ASSUMED.tokens > 0)
})

test('training takes more than an adapter, and that more than decoding', () => {
  for (const { config } of knownModels().slice(0, 4)) {
    const [full, lora, decoding] = USES.map(use => bytesFor(config, use)) as [number, number, number]
    assert.ok(full > lora && lora > decoding)
  }
})
