import assert from 'node:assert/strict'
import { test } from 'node:test'
import { z } from 'zod'
import { samplingKeys } from '../../../pipelines/config/sampling.ts'

const schema = z.strictObject(samplingKeys(0.5))

test('by default the distribution is not cut, and nothing but stop tokens ends a response', () => {
  assert.deepEqual(schema.parse({}), {
    ...{ temperature: 0.5, topK: 0, topP: 1, minP: 0 },
    ...{ maxNewTokens: 512, stop: [] },
  })
})

test('what no sampler takes is refused by key', () => {
  const cases: Readonly<Record<string, readonly unknown[]>> = {
    temperature: [-0.1, 'hot'],
    topK: [-1, 1.5],
    topP: [0, 1.1],
    minP: [-0.1, 1.1],
    maxNewTokens: [0],
    stop: ['text', [''], [3]],
  }
  for (const [key, values] of Object.entries(cases)) {
    for (const value of values) {
      const { error } = schema.safeParse({ [key]: value })
      assert.equal(error?.issues[0]?.path[0], key, `${key}: ${value}`)
    }
  }
  const good = { temperature: 0, topK: 5, topP: 0.1, minP: 1, maxNewTokens: 1, stop: ['\n\n', '#'] }
  assert.deepEqual(schema.parse(good), good)
})
