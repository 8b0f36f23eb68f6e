import assert from 'node:assert/strict'
import { test } from 'node:test'
import { distance, nearest } from '../../../pipelines/config/suggest.ts'

test('distance counts inserts, deletes, replacements and swaps of neighbours', () => {
  assert.equal(distance('', 'abc'), 3)
  assert.equal(distance('abc', 'abc'), 0)
  assert.equal(distance('abc', 'axc'), 1)
  assert.equal(distance('abc', 'acb'), 1)
  assert.equal(distance('kitten', 'sitting'), 3)
})

test('nearest ignores case and separators, and gives up on words that are far', () => {
  assert.equal(nearest('Learning-Rate', ['epochs', 'learningRate']), 'learningRate')
  assert.equal(nearest('sede', ['seed', 'epochs']), 'seed')
  assert.equal(nearest('banana', ['seed', 'epochs']), undefined)
  assert.equal(nearest('k', ['topK']), undefined)
})
