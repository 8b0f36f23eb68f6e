import assert from 'node:assert/strict'
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { Tensor } from 'onnxruntime-node'
import {
  readSafetensors,
  readSafetensorsHeader,
  writeSafetensors,
} from '../../../engine/weights/safetensors.ts'
import { GraspError } from '../../../errors/grasp-error.ts'

let folder: string
before(async () => {
  folder = await mkdtemp(join(tmpdir(), 'grasp-safetensors-'))
})
after(() => rm(folder, { recursive: true }))

const tensor = (values: number[], dims: number[]) => new Tensor('float32', Float32Array.from(values), dims)
const values = (found: Tensor | undefined) => [...(found!.data as Float32Array)]

/** Writes a file by hand: the header as given, then `size` zero bytes. */
async function file(header: unknown, size: number, declared?: bigint): Promise<string> {
  const path = join(folder, 'hand.safetensors')
  const json = Buffer.from(typeof header === 'string' ? header : JSON.stringify(header))
  const length = Buffer.alloc(8)
  length.writeBigUInt64LE(declared ?? BigInt(json.length))
  await writeFile(path, Buffer.concat([length, json, Buffer.alloc(size)]))
  return path
}

async function refusal(path: string): Promise<string> {
  const error = await readSafetensors(path).then(
    () => assert.fail('it was read'),
    (error: unknown) => error,
  )
  assert.ok(error instanceof GraspError)
  assert.equal(error.code, 'MODEL_INVALID')
  assert.ok(error.message.includes(path), error.message)
  return error.message
}

test('what is written is read back: f32 exactly, bf16 rounded', async () => {
  const path = join(folder, 'a.safetensors')
  const weights = new Map([
    ['z', tensor([1, 2, 3, 4, 5, 6], [2, 3])],
    ['a', tensor([1 + 2 ** -20, -0.1], [2])],
    ['scalar', tensor([7], [])],
    ['empty', tensor([], [0, 4])],
  ])
  await writeSafetensors(path, weights, { dtype: 'f32', metadata: { format: 'pt' } })
  const read = await readSafetensors(path)
  assert.deepEqual([...read.keys()].sort(), ['a', 'empty', 'scalar', 'z'])
  for (const [name, { dims, data }] of weights) {
    assert.deepEqual(read.get(name)!.dims, dims)
    assert.deepEqual(read.get(name)!.data, data)
  }
  assert.deepEqual((await readSafetensorsHeader(path)).metadata, { format: 'pt' })
  await writeSafetensors(path, weights, { dtype: 'bf16' })
  assert.deepEqual(values((await readSafetensors(path)).get('a')), [1, Math.fround(-0.10009765625)])
})

test('the order in which tensors are given does not change the bytes; the data is aligned', async () => {
  const [first, second] = [join(folder, '1'), join(folder, '2')]
  const a = tensor([1, 2], [2])
  const b = tensor([3], [1])
  const hash = await writeSafetensors(
    first,
    new Map([
      ['b', b],
      ['a', a],
    ]),
    { dtype: 'f32' },
  )
  assert.equal(
    hash,
    await writeSafetensors(
      second,
      new Map([
        ['a', a],
        ['b', b],
      ]),
      { dtype: 'f32' },
    ),
  )
  const bytes = await readFile(first)
  assert.deepEqual(bytes, await readFile(second))
  assert.equal(bytes.readBigUInt64LE(0) % 8n, 0n)
})

test('f16 tensors are widened; integers are refused by name', async () => {
  const path = await file({ h: { dtype: 'F16', shape: [1], data_offsets: [0, 2] } }, 0)
  await writeFile(path, Buffer.concat([await readFile(path), Buffer.from([0x00, 0x3e])]))
  assert.deepEqual(values((await readSafetensors(path)).get('h')), [1.5])
  const integers = await file({ ids: { dtype: 'I64', shape: [1], data_offsets: [0, 8] } }, 8)
  await assert.rejects(readSafetensors(integers), { code: 'MODEL_UNSUPPORTED', message: /ids has dtype I64/ })
})

test('damaged files are refused with the reason', async () => {
  const w = (shape: number[], start: number, end: number) => ({
    dtype: 'F32',
    shape,
    data_offsets: [start, end],
  })
  assert.match(await refusal(await file({ w: w([2], 0, 8) }, 7)), /cut off: its tensors need \d+ bytes/)
  assert.match(await refusal(await file({ w: w([2], 0, 8) }, 9)), /1 bytes after the last tensor/)
  assert.match(await refusal(await file({ w: w([3], 0, 8) }, 8)), /w is F32 \[3\], which takes 12 bytes/)
  assert.match(await refusal(await file({ a: w([2], 0, 8), b: w([2], 4, 12) }, 12)), /b overlaps a/)
  assert.match(await refusal(await file({ a: w([1], 0, 4), b: w([1], 8, 12) }, 12)), /4 bytes before b/)
  assert.match(await refusal(await file({ w: w([-2], 0, -8) }, 8)), /the entry of w is wrong/)
  assert.match(await refusal(await file({ w: { ...w([1], 0, 4), dtype: 'F31' } }, 4)), /unknown dtype F31/)
  assert.match(await refusal(await file('{"w": ', 0)), /not JSON/)
  assert.match(await refusal(await file('[]', 0)), /not a JSON object/)
  assert.match(await refusal(await file({}, 0, 500n)), /claims 500 bytes, but the file ends/)
  assert.match(await refusal(await file({}, 0, 2n ** 62n)), /not a safetensors file/)
  await writeFile(join(folder, 'short'), 'abc')
  assert.match(await refusal(join(folder, 'short')), /3 bytes, too few/)
  assert.match(await refusal(join(folder, 'absent')), /cannot be opened/)
})
