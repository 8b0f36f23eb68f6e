import assert from 'node:assert/strict'
import { test } from 'node:test'
import { checkSize } from '../../../engine/process/message-size.ts'

test('arrays of numbers count, wherever they are in a message, and 2 GiB of them are too much', () => {
  const half = new Uint8Array(2 ** 30)
  const scored = (count: number) =>
    Array.from({ length: count }, () => ({ teacher: { data: half, lse: [1, 2] }, kl: null, truncation: 0.1 }))
  checkSize('the answer to score', scored(1))
  checkSize('the answer to info', { device: 'cpu', stopTokens: [1], missing: undefined })
  assert.throws(() => checkSize('the answer to score', scored(2)), {
    code: 'ENGINE_FAILED',
    message: /^the answer to score holds 2\.0 GiB/,
  })
})
