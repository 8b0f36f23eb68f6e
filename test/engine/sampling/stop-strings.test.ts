import assert from 'node:assert/strict'
import { test } from 'node:test'
import { randomStream } from '../../../engine/sampling/random-stream.ts'
import { stopWatch } from '../../../engine/sampling/stop-strings.ts'

/** A tokenizer of bytes: ids below 256 are bytes, 256 is a control token, 300 and on are words. */
const WORDS = ['the ', 'end', '\n\n', 'x##', '#y']
const bytesOf = (id: number) => (id < 256 ? Buffer.of(id) : Buffer.from(id === 256 ? '' : WORDS[id - 300]!))
const decode = (ids: Int32Array) => Buffer.concat(Array.from(ids, bytesOf)).toString('utf8')

/** Index of the token at which the watch says stop, or -1. */
function stopsAt(stop: readonly string[], ids: readonly number[]): number {
  const ends = stopWatch(stop, decode)
  return ids.findIndex(id => ends(id))
}

/** By decoding the whole response at each token. */
function expected(stop: readonly string[], ids: readonly number[]): number {
  return ids.findIndex((_, i) =>
    stop.some(each => decode(Int32Array.from(ids.slice(0, i + 1))).includes(each)),
  )
}

test('a string is found within a token, across tokens, and before what else its last token holds', () => {
  assert.equal(stopsAt(['end'], [300, 301, 302]), 1)
  assert.equal(stopsAt(['###'], [300, 303, 304, 302]), 2)
  assert.equal(stopsAt(['e e'], [300, 301]), 1)
  assert.equal(stopsAt(['nothing', '\n'], [300, 302]), 1)
  assert.equal(stopsAt(['END'], [300, 301, 302]), -1)
})

test('a character that comes byte by byte counts once it is complete', () => {
  const bytes = [...Buffer.from('a😀é.')]
  assert.equal(stopsAt(['😀'], bytes), 4)
  assert.equal(stopsAt(['é'], bytes), 6)
  assert.equal(stopsAt(['😀é'], bytes), 6)
})

test('control tokens between its parts hide nothing: they are no text', () => {
  assert.equal(stopsAt(['the end'], [300, 256, 256, 301]), 3)
  assert.equal(stopsAt(['the end'], [300, ...new Array<number>(100).fill(256), 301]), 101)
})

test('in long responses it is found where decoding all of it finds it', () => {
  const alphabet = [97, 98, 0xc3, 0xa9, 256, 256, 300, 301, 302, 303, 304]
  let found = 0
  for (let number = 0; number < 60; number++) {
    const draw = randomStream({ seed: number, key: 'text', policy: 0 })
    const ids = Array.from({ length: 150 }, (_, i) => alphabet[Math.floor(draw(i) * alphabet.length)]!)
    for (const stop of [['endthe a'], ['b\n\nx##', 'éaé'], ['x###ythe the ']]) {
      const at = expected(stop, ids)
      if (at > 40) found++
      assert.equal(stopsAt(stop, ids), at)
    }
  }
  assert.ok(found > 5, `${found} late ones`)
})

test('each response has a watch of its own', () => {
  const [a, b] = [stopWatch(['the end'], decode), stopWatch(['the end'], decode)]
  assert.equal(a(300), false)
  assert.equal(b(301), false)
  assert.equal(a(301), true)
})
