import assert from 'node:assert/strict'
import { mkdir, mkdtemp, readFile, rm, symlink, truncate, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { Tensor } from 'onnxruntime-node'
import { readSafetensors, SafetensorsFile, writeSafetensors } from '../../../engine/weights/safetensors.ts'
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
  const file = await SafetensorsFile.open(path)
  assert.deepEqual(file.header.metadata, { format: 'pt' })
  await file.close()
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

test('tensors of many pieces are converted to their last element', async () => {
  const size = 2 * 1024 * 1024 + 3
  const data = Float32Array.from({ length: size }, (_, i) => (i % 256) * (i % 3 === 0 ? -1 : 1))
  const path = join(folder, 'large')
  await writeSafetensors(path, new Map([['w', new Tensor('float32', data, [size])]]), { dtype: 'bf16' })
  // Whole numbers up to 256 are exact in bf16.
  assert.deepEqual((await readSafetensors(path)).get('w')!.data, data)
})

test('quantised and complex tensors are told by name, not taken for damage', async () => {
  const of = (dtype: string, shape: number[], bytes: number) =>
    file({ w: { dtype, shape, data_offsets: [0, bytes] } }, bytes)
  for (const [dtype, shape, bytes] of [
    ['F8_E4M3', [3], 3],
    ['F4', [2, 2], 2],
    ['F6_E2M3', [4], 3],
    ['C64', [1], 8],
  ] as const) {
    await assert.rejects(readSafetensors(await of(dtype, [...shape], bytes)), {
      code: 'MODEL_UNSUPPORTED',
      message: new RegExp(`w has dtype ${dtype}; supported are F32, F16 and BF16`),
    })
  }
})

const noLinks = process.platform === 'win32' && 'links need a privilege on Windows'

test('a link to a file elsewhere is followed', { skip: noLinks }, async () => {
  const path = join(folder, 'there.safetensors')
  await writeSafetensors(path, new Map([['w', tensor([3], [1])]]), { dtype: 'f32' })
  const link = join(folder, 'link.safetensors')
  await symlink(path, link)
  assert.deepEqual(values((await readSafetensors(link)).get('w')), [3])
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
  const overLong = await file({}, 0, 100_000_001n)
  await truncate(overLong, 200_000_000)
  assert.match(await refusal(overLong), /claims 100000001 bytes; this is not a safetensors file/)
  await writeFile(join(folder, 'short'), 'abc')
  assert.match(await refusal(join(folder, 'short')), /3 bytes, too few/)
  assert.match(await refusal(join(folder, 'absent')), /cannot be opened/)
  await mkdir(join(folder, 'folder'))
  assert.match(await refusal(join(folder, 'folder')), /cannot be (opened|read)/)
})
