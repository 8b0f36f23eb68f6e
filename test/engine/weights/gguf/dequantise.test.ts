import assert from 'node:assert/strict'
import { readFile } from 'node:fs/promises'
import { test } from 'node:test'
import { TENSOR_TYPES } from '../../../../engine/weights/gguf/tensor-types.ts'

/** By test/golden/gguf-blocks.py. */
const golden: Record<string, { type: number; bytes: string; values: string }> = JSON.parse(
  await readFile(new URL('../../../golden/gguf-blocks.json', import.meta.url), 'utf8'),
)

test('every type that is read has golden values', () => {
  assert.deepEqual(Object.keys(golden).sort(), [...TENSOR_TYPES.values()].map(({ name }) => name).sort())
})

for (const [name, { type: number, bytes, values }] of Object.entries(golden)) {
  test(`${name} gives the bits of llama.cpp`, () => {
    const type = TENSOR_TYPES.get(number)!
    const source = new Uint8Array(Buffer.from(bytes, 'base64'))
    const expected = new Uint8Array(Buffer.from(values, 'base64'))
    const count = expected.length / 4
    assert.equal(type.name, name)
    assert.equal((count / type.block) * type.bytes, source.length)

    // Within a larger array, as rows of a tensor are.
    const target = new Float32Array(count + 2).fill(7)
    type.dequantise(source, target.subarray(1, count + 1))
    assert.deepEqual(new Uint32Array(target.buffer, 4, count), new Uint32Array(expected.buffer))
    assert.deepEqual([target[0], target[count + 1]], [7, 7])
  })
}
