import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { type Codec, createCodec } from '../../bus/codec.ts'
import type { GraspError } from '../../errors/grasp-error.ts'
import { type AvroNode, loadSchemas } from '../../schemas/load.ts'
import { readReleases } from '../../schemas/released.ts'
import type { Evaluation, Records, Topic } from '../../schemas/types.ts'
import { letter, question } from './samples.ts'

const evaluation: Evaluation = {
  instance: 'q1',
  split: 'test',
  category: 'Society_and_Culture',
  role: 'teacher',
  policyVersion: 2 ** 40,
  prompt: [0, 1, -1, 2 ** 31 - 1, -(2 ** 31)],
  responseTokens: [],
  response: 'Ünïcödé 😀\u0000',
  finish: 'stop',
  verdicts: [
    { aspect: 'a', score: 2, unscored: null },
    { aspect: 'b', score: null, unscored: 'the judge did not answer' },
  ],
  score: null,
  kl: 0.1 + 0.2,
  sampling: { temperature: 1, topK: 0, topP: 1, minP: 0.1, stop: ['\n\n'], maxNewTokens: 64, seed: 7 },
  judge: 'hash',
}

describe('the codec', () => {
  const codec = createCodec()

  it('gives back what it was given, as plain objects', () => {
    assert.deepEqual(codec.decode('evaluations', codec.encode('evaluations', evaluation)), evaluation)
    assert.deepEqual(codec.decode('questions', codec.encode('questions', question('a'))), question('a'))
  })

  it('writes the single-object encoding: marker, fingerprint little-endian, body', () => {
    const value = { version: 1, path: 'p', weightsHash: '', tokenizer: '', score: null, best: true }
    const bytes = codec.encode('policies', value)
    const { fingerprint } = codec.schemas.get('policies')!
    const littleEndian = fingerprint.match(/../g)!.reverse().join('')
    // Body: long 1, string "p", two empty strings, union branch 0, true.
    assert.equal(Buffer.from(bytes).toString('hex'), `c301${littleEndian}02027000000001`)
  })

  it('gives every topic another fingerprint', () => {
    const fingerprints = [...codec.schemas.values()].map(({ fingerprint }) => fingerprint)
    assert.equal(new Set(fingerprints).size, fingerprints.length)
  })

  it('encodes into the memory that it is given', () => {
    const target = new Uint8Array(4000).fill(0xff)
    let asked = 0
    codec.encode('questions', question('a'), size => {
      asked = size
      return target.subarray(100, 100 + size)
    })
    assert.deepEqual(target.subarray(100, 100 + asked), codec.encode('questions', question('a')))
    assert.ok(target.subarray(0, 100).every(byte => byte === 0xff))
    assert.ok(target.subarray(100 + asked).every(byte => byte === 0xff))
  })

  it('takes records of any size, and small ones after large ones', () => {
    for (const size of [0, 1, 70_000, 20 << 20, 3]) {
      const payload = new Uint8Array(size).map((_, i) => i * 7)
      const decoded = codec.decode('deadletters', codec.encode('deadletters', letter('k', payload)))
      assert.ok(Buffer.from(decoded.payload).equals(payload), `${size} bytes`)
    }
  })

  it('decodes bytes into memory of their own', () => {
    const bytes = codec.encode('deadletters', letter('k', Uint8Array.of(1, 2, 3, 4)))
    const { payload } = codec.decode('deadletters', bytes)
    bytes.fill(0)
    assert.deepEqual(payload, Uint8Array.of(1, 2, 3, 4))
    assert.equal(payload.buffer.byteLength, 4)
    assert.equal(Object.getPrototypeOf(payload), Uint8Array.prototype)
  })

  it('takes Buffers and views for bytes', () => {
    const view = Uint8Array.of(9, 1, 2, 9).subarray(1, 3)
    for (const payload of [view, Buffer.from(view)]) {
      const decoded = codec.decode('deadletters', codec.encode('deadletters', letter('k', payload)))
      assert.deepEqual(decoded.payload, Uint8Array.of(1, 2))
    }
  })

  describe('refuses to encode, naming topic, field and value:', () => {
    const wrong: [string, Topic, object, RegExp][] = [
      [
        'a missing field',
        'policies',
        { version: 1 },
        /record of policies: field path: expected string, got undefined/,
      ],
      [
        'a wrong type',
        'questions',
        { ...question('a'), user: 7 },
        /questions: field user: expected string, got 7/,
      ],
      [
        'a nested field',
        'questions',
        { ...question('a'), profile: [{ id: 'p', text: 't' }, { id: 'q' }] },
        /field profile\[1\]\.text: expected string, got undefined/,
      ],
      [
        'a union',
        'evaluations',
        { ...evaluation, score: 'high' },
        /field score: expected null or double, got 'high'/,
      ],
      [
        'a fraction where a whole number belongs',
        'evaluations',
        { ...evaluation, prompt: [1, 2.5] },
        /field prompt\[1\]: expected int, got 2\.5/,
      ],
      [
        'an int too large',
        'evaluations',
        { ...evaluation, prompt: [2 ** 31] },
        /expected int, got 2147483648/,
      ],
      ['a long too large', 'evaluations', { ...evaluation, policyVersion: 2 ** 60 }, /expected long/],
      [
        'something else than an array',
        'questions',
        { ...question('a'), aspects: {} },
        /aspects: expected array, got \{\}/,
      ],
      [
        'something else than bytes',
        'deadletters',
        { ...letter('k', new Uint8Array()), payload: 'x' },
        /expected bytes, got 'x'/,
      ],
      ['no record at all', 'questions', null as unknown as object, /the record: expected record, got null/],
    ]
    for (const [name, topic, value, message] of wrong) {
      it(name, () => {
        assert.throws(() => codec.encode(topic, value as never), { code: 'RECORD_INVALID', message })
      })
    }

    it('an unknown topic', () => {
      assert.throws(() => codec.encode('nonsense' as Topic, {} as never), { message: /no topic nonsense/ })
    })

    it('a long value is cut in the message', () => {
      const value = { ...question('a'), user: ['x'.repeat(10_000)] }
      assert.throws(
        () => codec.encode('questions', value as never),
        (error: GraspError) => error.message.length < 300,
      )
    })
  })

  describe('refuses to decode', () => {
    const good = codec.encode('evaluations', evaluation)
    const code = (bytes: Uint8Array, topic: Topic = 'evaluations') => {
      try {
        codec.decode(topic, bytes)
        return 'decoded'
      } catch (error) {
        return (error as GraspError).code
      }
    }

    it('what has no header', () => {
      assert.equal(code(new Uint8Array()), 'RECORD_UNDECODABLE')
      assert.equal(code(good.subarray(0, 9)), 'RECORD_UNDECODABLE')
      assert.equal(code(Uint8Array.from(good, (byte, i) => (i === 0 ? 0xc4 : byte))), 'RECORD_UNDECODABLE')
      assert.equal(code(new TextEncoder().encode('{"id": "q1"}')), 'RECORD_UNDECODABLE')
    })

    it('what is cut anywhere', () => {
      for (let length = 10; length < good.length; length++) {
        assert.equal(code(good.subarray(0, length)), 'RECORD_UNDECODABLE', `cut to ${length}`)
      }
    })

    it('what has something behind its end', () => {
      assert.equal(code(Uint8Array.of(...good, 0)), 'RECORD_UNDECODABLE')
    })

    it('random damage with a clean error and without endless work', () => {
      let seed = 1
      const random = () => {
        seed = (Math.imul(seed, 1103515245) + 12345) >>> 0
        return seed / 2 ** 32
      }
      for (let i = 0; i < 3000; i++) {
        const bytes = Uint8Array.from(good)
        for (let j = 0; j < 3; j++) bytes[10 + Math.floor(random() * (bytes.length - 10))] = random() * 256
        assert.match(code(bytes), /^(decoded|RECORD_UNDECODABLE)$/)
      }
    })

    it('an array that claims more items than there are bytes', () => {
      const bytes = codec.encode('questions', { ...question('a'), profile: [], aspects: [] })
      // The two empty arrays are the last two bytes; this one claims 2^34 items.
      const huge = Uint8Array.of(...bytes.subarray(0, -2), 0x80, 0x80, 0x80, 0x80, 0x80, 0x01)
      assert.throws(() => codec.decode('questions', huge), {
        code: 'RECORD_UNDECODABLE',
        message: /array reaches/,
      })
    })

    it('a schema that nobody knows, naming both fingerprints', () => {
      const bytes = Uint8Array.from(good)
      bytes.set([1, 2, 3, 4, 5, 6, 7, 8], 2)
      assert.throws(() => codec.decode('evaluations', bytes), {
        code: 'SCHEMA_UNKNOWN',
        message: new RegExp(`0807060504030201.*${codec.schemas.get('evaluations')!.fingerprint}`),
      })
    })
  })

  describe('reads records of older schemas:', () => {
    /** A codec whose questions have other fields, and one that reads them with the present schema. */
    const between = (change: (schema: AvroNode) => AvroNode) => {
      const schemas = loadSchemas()
      const old = createCodec(undefined, new Map([['questions', change(schemas.get('questions')!)]]))
      const { fingerprint, json } = old.schemas.get('questions')!
      const store = new Map([[fingerprint, json]])
      return { old, now: createCodec(store) }
    }
    const translate = ({ old, now }: { old: Codec; now: Codec }, value: object) =>
      now.decode('questions', old.encode('questions', value as Records['questions']))

    it('a field that is gone', () => {
      const codecs = between(schema => ({
        ...schema,
        fields: [{ name: 'legacy', type: 'string' }, ...schema.fields!],
      }))
      assert.deepEqual(translate(codecs, { ...question('a'), legacy: 'x' }), question('a'))
    })

    it('fields in another order', () => {
      const codecs = between(schema => ({ ...schema, fields: [...schema.fields!].reverse() }))
      // The reversed order defines Aspect before Post; both stay inlined where they stand.
      assert.deepEqual(translate(codecs, question('a')), question('a'))
    })

    it('a field that came with a default', () => {
      const schemas = loadSchemas()
      const without = (schema: AvroNode): AvroNode => ({
        ...schema,
        fields: schema.fields!.filter(field => field.name !== 'epoch'),
      })
      const old = createCodec(undefined, new Map([['instances', without(schemas.get('instances')!)]]))
      const { fingerprint, json } = old.schemas.get('instances')!
      const now = createCodec(new Map([[fingerprint, json]]))
      const { profile: _, ...asked } = question('a')
      const context = { ...asked, passages: [], profileSize: 1, retriever: 'r' }
      const value = { context, score: 1, tau: 1, batch: { number: 0, index: 0, size: 1 } }
      assert.deepEqual(now.decode('instances', old.encode('instances', value as never)), {
        ...value,
        epoch: 0,
      })
    })

    it('not a schema that lacks a field without a default', () => {
      const codecs = between(schema => ({ ...schema, fields: schema.fields!.slice(1) }))
      assert.throws(() => translate(codecs, question('a')), {
        code: 'SCHEMA_UNKNOWN',
        message: /does not resolve to the present one/,
      })
    })

    it('not a record of another topic', () => {
      const writer = createCodec()
      const { fingerprint, json } = writer.schemas.get('policies')!
      const reader = createCodec(new Map([[fingerprint, json]]))
      const value = { version: 1, path: 'p', weightsHash: '', tokenizer: '', score: null, best: true }
      const bytes = writer.encode('policies', value)
      assert.throws(() => reader.decode('questions', bytes), { code: 'SCHEMA_UNKNOWN' })
    })

    it('damage in them too', () => {
      const { old, now } = between(schema => ({
        ...schema,
        fields: [{ name: 'legacy', type: 'string' }, ...schema.fields!],
      }))
      const bytes = old.encode('questions', { ...question('a'), legacy: 'x' } as never)
      assert.throws(() => now.decode('questions', bytes.subarray(0, -3)), { code: 'RECORD_UNDECODABLE' })
    })

    it('asks the store once for a schema', () => {
      const { old } = between(schema => ({ ...schema, fields: [...schema.fields!].reverse() }))
      let asked = 0
      const now = createCodec({
        get: () => {
          asked++
          return old.schemas.get('questions')!.json
        },
      })
      for (let i = 0; i < 3; i++) now.decode('questions', old.encode('questions', question('a')))
      assert.equal(asked, 1)
    })

    it('of a released version, without a store', () => {
      for (const { schemas } of readReleases()) {
        const schema = schemas.policies!
        const grown = {
          ...schema,
          fields: [...schema.fields!, { name: 'note', type: 'string', default: '-' }],
        }
        const value = { version: 1, path: 'p', weightsHash: '', tokenizer: '', score: null, best: true }
        const bytes = createCodec(undefined, new Map([['policies', schema]])).encode('policies', value)
        const now = createCodec(undefined, new Map([['policies', grown]]))
        assert.deepEqual(now.decode('policies', bytes), { ...value, note: '-' })
      }
    })
  })

  it('says so where a schema registry wrote the record', () => {
    assert.throws(() => codec.decode('questions', Uint8Array.of(0, 0, 0, 0, 1, 2, 3, 4, 5, 6, 7)), {
      code: 'RECORD_UNDECODABLE',
      message: /if a schema registry wrote it, set log\.registry\.url/,
    })
  })
})
