import assert from 'node:assert/strict'
import { test } from 'node:test'
import { GPT2_PATTERN, splitBy, unicodePreTokenizer } from '../../../engine/tokens/unicode-pre-tokenizer.ts'

const byteLevel = (use_regex: boolean, add_prefix_space = false) => ({
  type: 'ByteLevel',
  add_prefix_space,
  use_regex,
})

test('digits and the pattern within ByteLevel become splits by Unicode classes', () => {
  const smollm = {
    type: 'Sequence',
    pretokenizers: [{ type: 'Digits', individual_digits: true }, byteLevel(true)],
  }
  assert.deepEqual(unicodePreTokenizer(smollm), {
    type: 'Sequence',
    pretokenizers: [splitBy('\\p{N}'), splitBy(GPT2_PATTERN), byteLevel(false)],
  })
  assert.deepEqual(unicodePreTokenizer({ type: 'Digits', individual_digits: false }), {
    type: 'Sequence',
    pretokenizers: [splitBy('\\p{N}+')],
  })
})

test('all else stays as it is', () => {
  const parts = [splitBy('x'), byteLevel(false), byteLevel(true, true), { type: 'Metaspace' }]
  const nested = { type: 'Sequence', pretokenizers: [{ type: 'Sequence', pretokenizers: parts }] }
  assert.deepEqual(unicodePreTokenizer(nested), { type: 'Sequence', pretokenizers: parts })
  assert.equal(unicodePreTokenizer(null), null)
  assert.equal(unicodePreTokenizer(undefined), null)
})
