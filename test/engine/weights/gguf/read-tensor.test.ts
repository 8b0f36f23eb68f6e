import assert from 'node:assert/strict'
import { mkdtemp, open, readFile, rm, truncate, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import type { Tensor } from 'onnxruntime-node'
import type { GgufTensor } from '../../../../engine/weights/gguf/gguf-header.ts'
import { type ReadOptions, readGgufTensor } from '../../../../engine/weights/gguf/read-tensor.ts'
import { TENSOR_TYPES } from '../../../../engine/weights/gguf/tensor-types.ts'

let folder: string
before(async () => {
  folder = await mkdtemp(join(tmpdir(), 'grasp-gguf-tensor-'))
})
after(() => rm(folder, { recursive: true, force: true }))

const START = 64

async function read(
  bytes: Uint8Array,
  tensor: Omit<GgufTensor, 'start' | 'end'>,
  options?: ReadOptions,
): Promise<Tensor> {
  const path = join(folder, 'data')
  await writeFile(path, Buffer.concat([Buffer.alloc(START), bytes]))
  const file = await open(path)
  try {
    const place = { ...tensor, start: START, end: START + bytes.length }
    return await readGgufTensor(path, file, 'w', place, options)
  } finally {
    await file.close()
  }
}

const golden: Record<string, { type: number; bytes: string; values: string }> = JSON.parse(
  await readFile(new URL('../../../golden/gguf-blocks.json', import.meta.url), 'utf8'),
)

for (const [name, { type: number, bytes, values }] of Object.entries(golden)) {
  test(`${name}: rows are put where they belong`, async () => {
    const type = TENSOR_TYPES.get(number)!
    const source = Buffer.from(bytes, 'base64')
    const expected = new Float32Array(new Uint8Array(Buffer.from(values, 'base64')).buffer)
    const columns = Math.max(type.block, 8)
    const rows = expected.length / columns
    const shape = [rows, columns]
    const plain = await read(source, { type, shape })
    assert.deepEqual(plain.dims, shape)
    assert.deepEqual(plain.data, expected)
    const reversed = (await read(source, { type, shape }, { rowOrder: row => rows - 1 - row }))
      .data as Float32Array
    for (let row = 0; row < rows; row++) {
      const from = (rows - 1 - row) * columns
      assert.deepEqual(
        reversed.subarray(row * columns, (row + 1) * columns),
        expected.subarray(from, from + columns),
      )
    }
  })
}

const f32 = TENSOR_TYPES.get(0)!
const bytesOf = (values: Float32Array) => new Uint8Array(values.buffer)

test('a tensor of more than one piece is whole', async () => {
  const values = Float32Array.from({ length: 3_000_000 }, (_, i) => i)
  for (const shape of [[3_000_000], [1000, 3000], [3000, 1000], [2, 50, 30_000]]) {
    const found = await read(bytesOf(values), { type: f32, shape })
    assert.deepEqual(found.dims, shape)
    assert.ok(Buffer.from((found.data as Float32Array).buffer).equals(Buffer.from(values.buffer)))
  }
})

test("a vector's values are rows of one, and an offset is added to each value", async () => {
  const values = bytesOf(Float32Array.of(1, 2, 3, 4))
  const swapped = await read(values, { type: f32, shape: [4] }, { rowOrder: row => row ^ 1, offset: -1 })
  assert.deepEqual([...(swapped.data as Float32Array)], [1, 0, 3, 2])
})

test('a file that ends early is named with the tensor', async () => {
  const path = join(folder, 'short')
  await writeFile(path, Buffer.alloc(100))
  const file = await open(path)
  try {
    await truncate(path, 70)
    await assert.rejects(
      readGgufTensor(path, file, 'blk.0.attn_q.weight', { type: f32, shape: [9], start: 64, end: 100 }),
      {
        code: 'MODEL_INVALID',
        message: /short was cut off while blk.0.attn_q.weight was read/,
      },
    )
  } finally {
    await file.close()
  }
})
