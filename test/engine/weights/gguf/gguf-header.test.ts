import assert from 'node:assert/strict'
import { mkdtemp, open, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { type GgufHeader, readGgufHeader } from '../../../../engine/weights/gguf/gguf-header.ts'
import {
  bool,
  f32,
  type GgufContent,
  type GgufTensorData,
  ggufBytes,
  list,
  text,
  u32,
} from '../../../helpers/write-gguf.ts'

const [F32, Q8_0, Q4_K] = [0, 8, 12]

let folder: string
before(async () => {
  folder = await mkdtemp(join(tmpdir(), 'grasp-gguf-'))
})
after(() => rm(folder, { recursive: true, force: true }))

async function read(content: GgufContent | Buffer): Promise<GgufHeader> {
  const path = join(folder, 'model.gguf')
  const bytes = Buffer.isBuffer(content) ? content : ggufBytes(content)
  await writeFile(path, bytes)
  const file = await open(path)
  try {
    return readGgufHeader(path, file.fd, bytes.length)
  } finally {
    await file.close()
  }
}

const tensor = (name: string, change: Partial<GgufTensorData> = {}): GgufTensorData => ({
  name,
  type: F32,
  shape: [2, 4],
  bytes: new Uint8Array(32),
  ...change,
})

test('reads metadata of every type, and where the tensors are', async () => {
  for (const version of [2, 3]) {
    const { metadata, tensors } = await read({
      version,
      metadata: {
        u8: { kind: 'u8', value: 200 },
        i8: { kind: 'i8', value: -100 },
        u16: { kind: 'u16', value: 60_000 },
        i16: { kind: 'i16', value: -30_000 },
        u32: u32(4_000_000_000),
        i32: { kind: 'i32', value: -2_000_000_000 },
        f32: f32(1e-5),
        f64: { kind: 'f64', value: 1e-300 },
        yes: bool(true),
        no: bool(false),
        text: text('日本 \u0000 👩‍👩‍👧‍👦'),
        u64: { kind: 'u64', value: 5 },
        i64: { kind: 'i64', value: -5 },
        large: { kind: 'u64', value: 2n ** 60n },
        strings: list('string', ['', 'ü', 'x'.repeat(3_000_000)]),
        numbers: list('i32', [1, -2, 3]),
        nothing: list('f32', []),
      },
      tensors: [
        tensor('a'),
        tensor('b', { type: Q8_0, shape: [3, 2, 32], bytes: new Uint8Array(6 * 34) }),
        tensor('c', { shape: [5], bytes: new Uint8Array(20) }),
      ],
    })
    const found = (key: string) => metadata.get(key)
    assert.deepEqual(
      ['u8', 'i8', 'u16', 'i16', 'u32', 'i32', 'f64', 'yes', 'no', 'u64', 'i64', 'large'].map(found),
      [200, -100, 60_000, -30_000, 4_000_000_000, -2_000_000_000, 1e-300, true, false, 5, -5, 2n ** 60n],
    )
    // As it was written, not 0.000009999999747378752.
    assert.equal(metadata.number('f32'), 1e-5)
    assert.equal(metadata.string('text'), '日本 \u0000 👩‍👩‍👧‍👦')
    assert.deepEqual(
      metadata.strings('strings').map(item => item.length),
      [0, 1, 3_000_000],
    )
    assert.deepEqual(metadata.numbers('numbers'), [1, -2, 3])
    assert.deepEqual(metadata.numbers('nothing'), [])
    const [a, b, c] = [...tensors.values()]
    assert.deepEqual([a!.shape, b!.shape, c!.shape], [[2, 4], [3, 2, 32], [5]])
    assert.deepEqual([a!.type.name, b!.type.name], ['F32', 'Q8_0'])
    assert.equal(a!.start % 32, 0)
    assert.deepEqual([a!.end - a!.start, b!.end - b!.start, c!.end - c!.start], [32, 204, 20])
    assert.ok(b!.start >= a!.end && c!.start >= b!.end)
  }
})

test('another alignment moves the data', async () => {
  const content = { metadata: { 'general.alignment': u32(256) }, tensors: [tensor('a'), tensor('b')] }
  const { tensors } = await read(content)
  assert.deepEqual([tensors.get('a')!.start, tensors.get('b')!.start], [256, 512])
  await assert.rejects(read({ metadata: { 'general.alignment': u32(12) } }), {
    code: 'MODEL_INVALID',
    message: /general.alignment is 12; expected a multiple of 8/,
  })
})

test('a file of another kind or version is named as such', async () => {
  const cases: [GgufContent | Buffer, string, RegExp][] = [
    [{ metadata: {}, magic: 'GGML' }, 'MODEL_INVALID', /model.gguf is no GGUF file/],
    [Buffer.from('{}'), 'MODEL_INVALID', /is no GGUF file/],
    [Buffer.alloc(0), 'MODEL_INVALID', /is no GGUF file/],
    [{ metadata: {}, version: 1 }, 'MODEL_UNSUPPORTED', /is of version 1; read are .* versions 2 and 3/],
    [{ metadata: {}, version: 4 }, 'MODEL_UNSUPPORTED', /of version 4/],
    [{ metadata: {}, version: 0x03000000 }, 'MODEL_UNSUPPORTED', /is big-endian/],
    [{ metadata: { 'split.count': { kind: 'u16', value: 3 } } }, 'MODEL_UNSUPPORTED', /one of 3 files/],
  ]
  for (const [content, code, message] of cases) await assert.rejects(read(content), { code, message })
})

test('a header that is cut off anywhere is named as damage, with where', async () => {
  const whole = ggufBytes({
    metadata: { name: text('x'), many: list('string', ['a', 'b']), size: u32(1) },
    tensors: [tensor('first'), tensor('second')],
  })
  for (let length = 4; length < whole.length; length++) {
    await assert.rejects(read(whole.subarray(0, length)), (error: { code: string; message: string }) => {
      assert.equal(error.code, 'MODEL_INVALID', `${length}`)
      assert.match(error.message, /model.gguf is damaged: .*Fetch or copy the file again/, `${length}`)
      return true
    })
  }
  const cases: [number, RegExp][] = [
    [whole.indexOf('second') + 10, /end within the entry of tensor second/],
    [whole.length - 1, /second \(F32 \[2, 4\]\) takes the bytes \d+–\d+, but the file has \d+/],
  ]
  for (const [length, message] of cases) await assert.rejects(read(whole.subarray(0, length)), { message })
})

test('damaged entries name the tensor or key and what was expected', async () => {
  const one = (change: Partial<GgufTensorData>) => ({ metadata: {}, tensors: [tensor('w', change)] })
  const raw = (type: number, bytes: number[]) => ({ raw: { type, bytes: Uint8Array.from(bytes) } })
  const cases: [GgufContent, string, RegExp][] = [
    [one({ type: 99 }), 'MODEL_INVALID', /w has the unknown tensor type 99/],
    [one({ type: 10 }), 'MODEL_UNSUPPORTED', /w has the tensor type Q2_K; read are F32, F16, .*Q6_K/],
    [one({ offset: 8 }), 'MODEL_INVALID', /w begins at byte 8 of the data; expected a multiple of 32/],
    [one({ offset: 2 ** 40 }), 'MODEL_INVALID', /w \(F32 \[2, 4\]\) takes the bytes/],
    [one({ shape: [2, 2 ** 50] }), 'MODEL_INVALID', /w \(F32 .* takes the bytes/],
    [one({ shape: [2, 0] }), 'MODEL_INVALID', /w has a dimension of length 0/],
    [one({ shape: [] }), 'MODEL_INVALID', /w has 0 dimensions; expected 1 to 4/],
    [one({ shape: [1, 1, 1, 1, 8] }), 'MODEL_INVALID', /w has 5 dimensions/],
    [
      one({ type: Q4_K, shape: [2, 128] }),
      'MODEL_INVALID',
      /w \[2, 128\] is Q4_K, whose blocks hold 256 values, but its rows have 128/,
    ],
    [{ metadata: {}, tensors: [tensor('w'), tensor('w')] }, 'MODEL_INVALID', /it has the tensor w twice/],
    [{ metadata: {}, tensors: [tensor('v'), tensor('w', { offset: 0 })] }, 'MODEL_INVALID', /w overlaps v/],
    [
      {
        metadata: [
          ['k', u32(1)],
          ['k', u32(2)],
        ],
      },
      'MODEL_INVALID',
      /the metadata have k twice/,
    ],
    [{ metadata: { k: raw(13, [0]) } }, 'MODEL_INVALID', /k has the unknown value type 13/],
    [{ metadata: { k: raw(9, [13, 0, 0, 0]) } }, 'MODEL_INVALID', /k is a list of the unknown value type 13/],
    [
      { metadata: { k: raw(8, [255, 255, 255, 255, 255, 255, 255, 127]) } },
      'MODEL_INVALID',
      /k claims a length of \d+/,
    ],
    [
      { metadata: { k: raw(9, [4, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0]) } },
      'MODEL_INVALID',
      /k claims a length of \d+/,
    ],
    [{ metadata: {}, tensorCount: 2 ** 40 }, 'MODEL_INVALID', /the number of tensors claims a length/],
    [{ metadata: {}, metadataCount: 2 ** 40 }, 'MODEL_INVALID', /the number of metadata entries claims/],
    [
      { metadata: {}, tensors: [tensor('w')], tensorCount: 2 },
      'MODEL_INVALID',
      /the name of tensor 2 of 2|w|damaged/,
    ],
  ]
  for (const [content, code, message] of cases) await assert.rejects(read(content), { code, message })
})

test('lists may nest, but not without end', async () => {
  const nested = (depth: number): Uint8Array => {
    const inner = depth === 0 ? [4, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 7, 0, 0, 0] : [...nested(depth - 1)]
    return Uint8Array.from(depth === 0 ? inner : [9, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, ...inner])
  }
  const of = (depth: number) => read({ metadata: { k: { raw: { type: 9, bytes: nested(depth) } } } })
  assert.deepEqual((await of(2)).metadata.get('k'), [[[7]]])
  await assert.rejects(of(50), { code: 'MODEL_INVALID', message: /k nests lists more than 4 deep/ })
})

test('a key of another type than it should have, or that is missing, is named', async () => {
  const { metadata } = await read({
    metadata: {
      s: text('x'),
      n: u32(3),
      zero: u32(0),
      f: f32(0.5),
      l: list('u32', [1]),
      b: bool(true),
      long: text('y'.repeat(99)),
    },
  })
  const cases: [() => unknown, RegExp][] = [
    [() => metadata.string('n'), /model.gguf is wrong: n is 3; expected a string/],
    [() => metadata.string('gone'), /its metadata lack gone/],
    [() => metadata.number('s'), /s is "x"; expected a number/],
    [() => metadata.number('long'), /long is a string of 99 characters; expected a number/],
    [() => metadata.size('zero'), /zero is 0; expected a positive whole number/],
    [() => metadata.size('f'), /f is 0.5; expected a positive whole number/],
    [() => metadata.strings('l'), /l is a list of 1; expected a list of strings/],
    [() => metadata.numbers('b'), /b is true; expected a list of numbers/],
    [() => metadata.optionalBoolean('n'), /n is 3; expected true or false/],
  ]
  for (const [take, message] of cases) assert.throws(take, { code: 'MODEL_INVALID', message })
  assert.equal(metadata.optionalNumber('gone'), undefined)
})
