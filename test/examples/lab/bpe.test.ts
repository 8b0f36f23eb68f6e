import assert from 'node:assert/strict'
import { test } from 'node:test'
import { byteAlphabet, trainBpe } from '../../../examples/lab/bpe.ts'

test('merges the most frequent pair first, ties in the order of the pairs', () => {
  // Pairs of "aab" ×2 and " ab" ×1: ab 3, aa 2, Ġa 1. After ab: a+ab 2, Ġ+ab 1, which is too rare.
  const { symbols, merges } = trainBpe(['aab', 'aab ab'], 300)
  assert.deepEqual(merges, [
    ['a', 'b'],
    ['a', 'ab'],
  ])
  assert.deepEqual(symbols.slice(256), ['ab', 'aab'])
  assert.deepEqual(trainBpe(['zyzy', 'baba'], 257).merges, [['b', 'a']])
})

test('stops at the size asked for', () => {
  assert.equal(trainBpe(['low lower lowest low low'], 259).symbols.length, 259)
})

test('the alphabet has a printable character of its own for every byte, as GPT-2’s', () => {
  const alphabet = byteAlphabet()
  assert.equal(new Set(alphabet).size, 256)
  assert.equal(alphabet[0x41], 'A')
  assert.equal(alphabet[0x20], 'Ġ')
  assert.equal(alphabet[0x0a], 'Ċ')
  assert.equal(alphabet[0xad], 'Ń')
})
