import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { after, before, test } from 'node:test'
import { Tensor } from 'onnxruntime-node'
import { HashThread } from '../../../engine/weights/hash-thread.ts'
import { WeightsHasher, weightsHash } from '../../../engine/weights/weights-hash.ts'

let thread: HashThread
before(async () => {
  thread = new HashThread()
  while (!thread.isReady) await new Promise(wait => setTimeout(wait, 5))
})
after(() => thread.close())

const MB = 1024 * 1024
const bytes = (length: number, seed: number) =>
  Uint8Array.from({ length }, (_, i) => (Math.imul(i + seed, 2654435761) >>> 24) & 0xff)

test('the hash is that of node:crypto, whatever the pieces', () => {
  const cases = [
    [],
    [0],
    [1, 2, 3],
    [MB],
    [MB - 1, 1, MB + 1],
    [9 * MB + 17],
    new Array<number>(50).fill(1000),
  ]
  for (const lengths of cases) {
    const [ours, theirs] = [thread.hash(), createHash('sha256')]
    for (const [i, length] of lengths.entries()) {
      const piece = bytes(length, i)
      ours.update(piece)
      theirs.update(piece)
      ours.update(`n${i}é`)
      theirs.update(`n${i}é`)
    }
    assert.equal(ours.digest('hex'), theirs.digest('hex'), String(lengths))
  }
})

test('bytes are taken as they are when they are given', () => {
  const piece = bytes(6 * MB, 1)
  const expected = createHash('sha256').update(piece).digest('hex')
  const hash = thread.hash()
  hash.update(piece)
  piece.fill(0)
  assert.equal(hash.digest('hex'), expected)
})

test('a hash that was given up leaves nothing to the next', () => {
  thread.hash().update(bytes(3 * MB, 2))
  const hash = thread.hash()
  hash.update('a')
  assert.equal(hash.digest('hex'), createHash('sha256').update('a').digest('hex'))
})

test('while it starts, hashes are computed all the same', async () => {
  const starting = new HashThread()
  const hash = starting.hash()
  hash.update('a')
  assert.equal(hash.digest('hex'), createHash('sha256').update('a').digest('hex'))
  await starting.close()
})

test('weights that come one by one have the hash of the weights', () => {
  const tensor = (...dims: number[]) => {
    const size = dims.reduce((product, dim) => product * dim, 1)
    return new Tensor(
      'float32',
      Float32Array.from({ length: size }, (_, i) => Math.sin(i)),
      dims,
    )
  }
  const weights = new Map([
    ['b', tensor(700, 1000)],
    ['a.10', tensor(3)],
    ['a.9', tensor(2, 2)],
  ])
  const hasher = new WeightsHasher(thread.hash())
  for (const name of ['a.10', 'a.9', 'b']) hasher.add(name, weights.get(name)!)
  assert.equal(hasher.digest(), weightsHash(weights))
})
