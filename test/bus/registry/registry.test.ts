/** The registry client and the codec over it, against a real registry. */
import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { createServer as createHttpServer, request as proxyRequest } from 'node:http'
import { createServer, type Server } from 'node:https'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import { inspect } from 'node:util'
import { createCodec } from '../../../bus/codec.ts'
import { createRegistryCodec } from '../../../bus/registry/codec.ts'
import { Registry } from '../../../bus/registry/registry.ts'
import { type AvroNode, loadSchemas } from '../../../schemas/load.ts'
import { TOPICS, type Topic } from '../../../schemas/types.ts'
import { type Authority, hasOpenssl, makeAuthority } from '../../helpers/certificates.ts'
import { findRegistry } from '../../helpers/schema-registry.ts'
import { letter, question } from '../samples.ts'

const found = await findRegistry()
const skip = found.url === undefined ? found.skip : false
const openssl = (await hasOpenssl()) ? false : 'needs openssl to make certificates'

describe('a schema registry', { skip }, () => {
  let url: string
  before(() => {
    url = found.url!
  })
  after(() => found.url !== undefined && found.stop())

  /** Names of a run of its own. */
  const names = (run = randomUUID()) => {
    const topicName = (topic: Topic) => `grasp.${run}.${topic}`
    return { topicName, subject: (topic: Topic) => `${topicName(topic)}-value` }
  }
  const registry = () => new Registry({ url, waitMs: 5_000 })
  const changed = (topic: Topic, change: (schema: AvroNode) => AvroNode) => {
    const schemas = new Map(loadSchemas())
    return schemas.set(topic, change(schemas.get(topic)!))
  }
  const grown = changed('questions', schema => ({
    ...schema,
    fields: [...schema.fields!, { name: 'language', type: 'string', default: 'en' }],
  }))

  test('records are written in the Confluent wire format and read by somebody else', async () => {
    const { topicName, subject } = names()
    const writer = createRegistryCodec({ registry: registry(), topicName })
    await writer.prepareToEncode(['questions'])
    const bytes = writer.encode('questions', question('a'))
    assert.equal(bytes[0], 0)
    const id = Buffer.from(bytes).readUInt32BE(1)
    const answer = await fetch(`${url}/schemas/ids/${id}`)
    const { schema } = (await answer.json()) as { schema: string }
    assert.deepEqual(JSON.parse(schema), loadSchemas().get('questions'))
    const latest = await fetch(`${url}/subjects/${subject('questions')}/versions/latest`)
    assert.equal(((await latest.json()) as { id: number }).id, id)
    const rule = await fetch(`${url}/config/${subject('questions')}`)
    assert.deepEqual(await rule.json(), { compatibilityLevel: 'BACKWARD' })

    // A process that writes nothing registers nothing.
    const reader = createRegistryCodec({ registry: registry(), topicName: names().topicName })
    await reader.prepareToDecode('questions', bytes)
    assert.deepEqual(reader.decode('questions', bytes), question('a'))
    assert.equal(writer.isCurrent('questions', bytes), true)
    // The body is what it is without a registry.
    assert.deepEqual(bytes.subarray(5), createCodec().encode('questions', question('a')).subarray(10))
  })

  test('all topics are registered, by several processes at once, under the same ids', async () => {
    const { topicName } = names()
    const codecs = Array.from({ length: 4 }, () => createRegistryCodec({ registry: registry(), topicName }))
    await Promise.all(codecs.map(codec => codec.prepareToEncode(TOPICS)))
    const encoded = codecs.map(codec => codec.encode('deadletters', letter('k', new Uint8Array(3))))
    for (const bytes of encoded) assert.deepEqual(bytes, encoded[0])
  })

  test('readers resolve the schemas of older writers, and older readers those of newer ones', async () => {
    const { topicName } = names()
    const older = createRegistryCodec({ registry: registry(), topicName })
    const newer = createRegistryCodec({ registry: registry(), topicName, schemas: grown })
    await older.prepareToEncode(['questions'])
    await newer.prepareToEncode(['questions'])
    const old = older.encode('questions', question('a'))
    await newer.prepareToDecode('questions', old)
    assert.deepEqual(newer.decode('questions', old), { ...question('a'), language: 'en' })
    const recent = newer.encode('questions', { ...question('b'), language: 'de' } as never)
    await older.prepareToDecode('questions', recent)
    assert.deepEqual(older.decode('questions', recent), question('b'))
    assert.equal(older.isCurrent('questions', recent), false)
  })

  test('an incompatible schema is refused, naming subject and what is wrong', async () => {
    const { topicName, subject } = names()
    await createRegistryCodec({ registry: registry(), topicName }).prepareToEncode(['questions'])
    const schemas = changed('questions', schema => ({
      ...schema,
      fields: schema.fields!.map(field => (field.name === 'id' ? { ...field, type: 'long' } : field)),
    }))
    const codec = createRegistryCodec({ registry: registry(), topicName, schemas })
    await assert.rejects(codec.prepareToEncode(['questions']), (error: Error & { code: string }) => {
      assert.equal(error.code, 'LOG_MISMATCH')
      assert.ok(error.message.includes(`refuses the schema of ${subject('questions')}`), error.message)
      return true
    })
    assert.throws(() => codec.encode('questions', question('a')), { code: 'LOG_UNAVAILABLE' })
  })

  test('a rule that somebody chose for a subject stays', async () => {
    const { topicName, subject } = names()
    const path = `${url}/config/${subject('questions')}`
    const headers = { 'Content-Type': 'application/vnd.schemaregistry.v1+json' }
    await fetch(path, { method: 'PUT', headers, body: '{"compatibility":"FULL"}' })
    await createRegistryCodec({ registry: registry(), topicName }).prepareToEncode(['questions'])
    assert.deepEqual(await (await fetch(path)).json(), { compatibilityLevel: 'FULL' })
  })

  test('an id that the registry does not know condemns the record', async () => {
    const { topicName } = names()
    const codec = createRegistryCodec({ registry: new Registry({ url, waitMs: 500 }), topicName })
    await codec.prepareToEncode(['questions'])
    const bytes = Uint8Array.of(0, 0x7f, 0xff, 0xff, 0xff, 1, 2, 3)
    await codec.prepareToDecode('questions', bytes)
    assert.throws(() => codec.decode('questions', bytes), {
      code: 'SCHEMA_UNKNOWN',
      message: /schema id 2147483647, which the schema registry at .* does not know/,
    })
  })

  test('a registry that has lost its schemas, or is another one, condemns nothing', async () => {
    const { topicName, subject } = names()
    const codec = createRegistryCodec({ registry: new Registry({ url, waitMs: 0 }), topicName })
    const bytes = Uint8Array.of(0, 0x7f, 0xff, 0xff, 0xff, 1, 2, 3)
    const told = {
      code: 'LOG_MISMATCH',
      message: new RegExp(`knows neither .*2147483647.* nor .*${subject('questions')}`),
    }
    await assert.rejects(codec.prepareToDecode('questions', bytes), told)
    // It is asked again, since they may be back.
    await codec.prepareToEncode(['questions'])
    await codec.prepareToDecode('questions', bytes)
  })

  test('a registry that is about to know its schemas is waited for', async () => {
    const { topicName } = names()
    const writer = createRegistryCodec({ registry: registry(), topicName })
    const reader = createRegistryCodec({ registry: registry(), topicName })
    const bytes = Uint8Array.of(0, 0x7f, 0xff, 0xff, 0xff, 1, 2, 3)
    const waiting = reader.prepareToDecode('questions', bytes)
    await new Promise(resolve => setTimeout(resolve, 300))
    await writer.prepareToEncode(['questions'])
    await waiting
    assert.throws(() => reader.decode('questions', bytes), { code: 'SCHEMA_UNKNOWN' })
  })

  test('the schema of another topic does not resolve', async () => {
    const { topicName } = names()
    const codec = createRegistryCodec({ registry: registry(), topicName })
    await codec.prepareToEncode(['deadletters'])
    const bytes = codec.encode('deadletters', letter('k', new Uint8Array(3)))
    assert.throws(() => codec.decode('questions', bytes), {
      code: 'SCHEMA_UNKNOWN',
      message: /does not resolve to the present one/,
    })
  })

  test('records from before the registry are read, and what is no record is said to be none', async () => {
    const codec = createRegistryCodec({ registry: registry(), topicName: names().topicName })
    const before = createCodec().encode('questions', question('a'))
    await codec.prepareToDecode('questions', before)
    assert.deepEqual(codec.decode('questions', before), question('a'))
    for (const bytes of [Uint8Array.of(), Uint8Array.of(0, 0, 0), new TextEncoder().encode('hello')]) {
      await codec.prepareToDecode('questions', bytes)
      assert.throws(() => codec.decode('questions', bytes), {
        code: 'RECORD_UNDECODABLE',
        message: /expected Confluent's wire format/,
      })
    }
  })

  test('damage is told', async () => {
    const codec = createRegistryCodec({ registry: registry(), topicName: names().topicName })
    await codec.prepareToEncode(['questions'])
    const bytes = codec.encode('questions', question('a'))
    assert.throws(() => codec.decode('questions', bytes.subarray(0, -2)), { code: 'RECORD_UNDECODABLE' })
  })

  test('an address that is no Confluent API is told', async () => {
    const wrong = new Registry({ url: new URL('/nowhere', url).href, waitMs: 0 })
    await assert.rejects(wrong.register('s', '"int"'), {
      code: 'LOG_UNAVAILABLE',
      message: /answered 404.*is log\.registry\.url the base of a Confluent API\?/,
    })
  })

  describe('behind TLS and a password', { skip: skip || openssl }, () => {
    let folder: string
    let authority: Authority
    let server: Server
    let secure: string
    let tls: { ca: string; cert: string; key: string }
    const requests: string[] = []
    before(async () => {
      folder = await mkdtemp(join(tmpdir(), 'grasp-registry-'))
      authority = await makeAuthority(folder, 'authority')
      const [own, client] = [await authority.issue('registry'), await authority.issue('client')]
      const text = (file: string) => readFile(file, 'utf8')
      const ca = await text(authority.cert)
      tls = { ca, cert: await text(client.cert), key: await text(client.key) }
      const options = { cert: await text(own.cert), key: await text(own.key), ca, requestCert: true }
      // A proxy as it stands before a registry: it ends TLS and checks who comes.
      server = createServer({ ...options, rejectUnauthorized: false }, (request, response) => {
        requests.push(request.url!)
        const login = `Basic ${Buffer.from('bob:hunter2').toString('base64')}`
        if (request.headers.authorization !== login) return void response.writeHead(401).end()
        const target = new URL(url)
        const { method, headers } = request
        const path = `${target.pathname}${request.url}`
        const onward = proxyRequest(
          { host: target.hostname, port: target.port, path, method, headers },
          answer => {
            response.writeHead(answer.statusCode!, answer.headers)
            answer.pipe(response)
          },
        )
        request.pipe(onward)
      }).listen(0, '127.0.0.1')
      await once(server, 'listening')
      secure = `https://127.0.0.1:${(server.address() as AddressInfo).port}`
    })
    after(async () => {
      server.closeAllConnections()
      server.close()
      await rm(folder, { recursive: true })
    })
    const login = { username: 'bob', password: 'hunter2' }

    test('it is used with both', async () => {
      const { topicName } = names()
      const guarded = new Registry({ url: `${secure}/`, ...login, tls, waitMs: 0 })
      const codec = createRegistryCodec({ registry: guarded, topicName })
      await codec.prepareToEncode(['questions'])
      const reader = createRegistryCodec({ registry: guarded, topicName })
      const bytes = codec.encode('questions', question('a'))
      await reader.prepareToDecode('questions', bytes)
      assert.deepEqual(reader.decode('questions', bytes), question('a'))
    })

    test('a wrong password is told at once, without showing it', async () => {
      const wrong = new Registry({ url: secure, username: 'bob', password: 'hunter3', tls, waitMs: 60_000 })
      requests.length = 0
      await assert.rejects(wrong.register('s', '"int"'), (error: Error & { code: string }) => {
        assert.equal(error.code, 'LOG_UNAVAILABLE')
        assert.match(error.message, /refuses this user \(401\): check log\.registry\.username/)
        assert.doesNotMatch(inspect(error), /hunter/)
        return true
      })
      assert.equal(requests.length, 1)
    })

    test('an untrusted certificate is told at once', async () => {
      const other = await makeAuthority(folder, 'other')
      for (const ca of [undefined, await readFile(other.cert, 'utf8')]) {
        const options = ca === undefined ? {} : { tls: { ca } }
        const distrustful = new Registry({ url: secure, ...login, ...options, waitMs: 60_000 })
        await assert.rejects(distrustful.register('s', '"int"'), {
          code: 'LOG_UNAVAILABLE',
          message:
            /cannot be reached: no trusted TLS .*self-signed certificate.*check log\.registry\.tls\.ca/,
        })
      }
    })

    test('TLS where there is none is told at once', async () => {
      const plain = new Registry({ url: url.replace('http:', 'https:'), waitMs: 60_000 })
      await assert.rejects(plain.register('s', '"int"'), {
        code: 'LOG_UNAVAILABLE',
        message: /cannot be reached: .*speaks no TLS there; check log\.registry\.tls/,
      })
    })

    test('no password where one is needed is told', async () => {
      const anonymous = new Registry({ url: secure, tls, waitMs: 60_000 })
      await assert.rejects(anonymous.check(), {
        code: 'LOG_UNAVAILABLE',
        message: /wants a user \(401\): set log\.registry\.username/,
      })
    })
  })
})

describe('a schema registry that does not answer', () => {
  const topicName = (topic: Topic) => topic
  const codecAt = (url: string, waitMs: number) =>
    createRegistryCodec({ registry: new Registry({ url, waitMs, timeoutMs: 200 }), topicName })

  test('is told with its address and what to do, for writers and for readers', async () => {
    const port = await freePort()
    const codec = codecAt(`http://127.0.0.1:${port}`, 300)
    const told = {
      code: 'LOG_UNAVAILABLE',
      message: new RegExp(
        `schema registry at http://127\\.0\\.0\\.1:${port} cannot be reached: .*ECONNREFUSED.*; start it`,
      ),
    }
    await assert.rejects(codec.prepareToEncode(['questions']), told)
    await assert.rejects(codec.prepareToDecode('questions', Uint8Array.of(0, 0, 0, 0, 9, 1)), told)
  })

  test('is asked again, and used once it answers', async () => {
    const answers = [503, 429, 200]
    const server = createHttpServer((_request, response) => {
      response.writeHead(answers.shift() ?? 200).end(JSON.stringify({ id: 7, message: 'busy' }))
    }).listen(0, '127.0.0.1')
    await once(server, 'listening')
    try {
      const codec = codecAt(`http://127.0.0.1:${(server.address() as AddressInfo).port}`, 60_000)
      await codec.prepareToEncode(['questions'])
      assert.deepEqual([...codec.encode('questions', question('a')).subarray(0, 5)], [0, 0, 0, 0, 7])
    } finally {
      server.closeAllConnections()
      server.close()
    }
  })

  test('is not asked for an id that none can have', async () => {
    const codec = codecAt(`http://127.0.0.1:${await freePort()}`, 0)
    const bytes = Uint8Array.of(0, 0x80, 0, 0, 0, 1)
    await codec.prepareToDecode('questions', bytes)
    assert.throws(() => codec.decode('questions', bytes), { code: 'SCHEMA_UNKNOWN', message: /2147483648/ })
  })

  test('that may only be read at the moment is not said to refuse the schema', async () => {
    const codes = [40401, 40408, 0, 42205]
    const server = createHttpServer((_request, response) => {
      const error_code = codes.shift()!
      response.writeHead(error_code === 0 ? 200 : Math.floor(error_code / 100))
      response.end(JSON.stringify({ error_code, message: 'is in read-only mode' }))
    }).listen(0, '127.0.0.1')
    await once(server, 'listening')
    try {
      const codec = codecAt(`http://127.0.0.1:${(server.address() as AddressInfo).port}`, 0)
      await assert.rejects(codec.prepareToEncode(['questions']), {
        code: 'LOG_UNAVAILABLE',
        message: /answered 422: is in read-only mode/,
      })
    } finally {
      server.closeAllConnections()
      server.close()
    }
  })

  test('is given up when it takes too long', async () => {
    const server = createHttpServer(() => {}).listen(0, '127.0.0.1')
    await once(server, 'listening')
    try {
      const codec = codecAt(`http://127.0.0.1:${(server.address() as AddressInfo).port}`, 0)
      await assert.rejects(codec.prepareToEncode(['questions']), {
        code: 'LOG_UNAVAILABLE',
        message: /it did not answer in time/,
      })
    } finally {
      server.closeAllConnections()
      server.close()
    }
  })
})

async function freePort(): Promise<number> {
  const server = createHttpServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  await once(server.close(), 'close')
  return port
}
