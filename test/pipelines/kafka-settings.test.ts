import assert from 'node:assert/strict'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import { inspect } from 'node:util'
import { GraspError } from '../../errors/grasp-error.ts'
import { loadConfig } from '../../pipelines/config/load.ts'
import { kafkaSettings, openRegistry } from '../../pipelines/kafka-settings.ts'
import { hasOpenssl, makeAuthority } from '../helpers/certificates.ts'

const FILE =
  'run: lab\nmodel: { path: m }\ndata: { train: t.json }\njudge: { kind: lexical }\n' +
  'log: { kind: kafka, brokers: "127.0.0.1:1, [::1]:2" }\n'
const LOGIN = 'log.sasl={mechanism: scram-sha-512, username: bob, passwordEnv: GRASP_TEST_PASSWORD}'

const openssl = (await hasOpenssl()) ? false : 'needs openssl to make them'

describe('the settings of the Kafka adapter', () => {
  let folder: string
  before(() => {
    folder = mkdtempSync(join(tmpdir(), 'grasp-settings-'))
    writeFileSync(join(folder, 'grasp.yaml'), FILE)
  })
  after(() => rmSync(folder, { recursive: true }))
  const file = (name: string, text: string) => {
    writeFileSync(join(folder, name), text)
    return name
  }
  const settings = (set: string[] = [], env: Record<string, string> = {}) =>
    kafkaSettings(loadConfig({ cwd: folder, set }), env)
  async function fault(set: string[], env: Record<string, string> = {}): Promise<string> {
    const error = await settings(set, env).catch(error => error)
    assert.ok(error instanceof GraspError, inspect(error))
    assert.equal(error.code, 'CONFIG_INVALID')
    assert.doesNotMatch(inspect(error, { depth: 9 }), /hunter2/)
    return error.message
  }

  test('are those of the configuration', async () => {
    const { partitions, ...rest } = await settings([
      'log.partitions=3',
      'log.replication=2',
      'log.retentionHours=5',
      'log.prefix=p',
    ])
    assert.deepEqual(rest, {
      brokers: ['127.0.0.1:1', '[::1]:2'],
      run: 'lab',
      prefix: 'p',
      clientId: 'grasp',
      replication: 2,
      retentionHours: 5,
      maxMessageBytes: 8 << 20,
      compression: 'none',
      timeouts: {
        connect: 5_000,
        request: 30_000,
        away: 180_000,
        session: 45_000,
        rebalance: 60_000,
        stuck: 1_800_000,
        close: 10_000,
      },
    })
    assert.equal(partitions?.questions, 3)
    assert.equal(partitions?.deadletters, 3)
  })

  test('what is not set is left to the brokers', async () => {
    const given = await settings()
    assert.ok(!('replication' in given) && !('retentionHours' in given) && !('codec' in given))
  })

  test('a password comes from the environment or a file, a line end after it left out', async () => {
    const sasl = { mechanism: 'scram-sha-512', username: 'bob', password: 'hunter2 ' }
    assert.deepEqual((await settings([LOGIN], { GRASP_TEST_PASSWORD: 'hunter2 ' })).sasl, sasl)
    const login = `log.sasl={mechanism: scram-sha-512, username: bob, passwordFile: ${file('password', 'hunter2 \r\n')}}`
    assert.deepEqual((await settings([login])).sasl, sasl)
  })

  test('a password that is not there is told by key and place', async () => {
    const from = (source: string) => [`log.sasl={mechanism: plain, username: bob, ${source}}`]
    assert.equal(
      await fault([LOGIN]),
      'log.sasl.passwordEnv: the environment variable GRASP_TEST_PASSWORD is not set',
    )
    assert.match(await fault([LOGIN], { GRASP_TEST_PASSWORD: '' }), /GRASP_TEST_PASSWORD is empty/)
    assert.match(
      await fault(from('passwordFile: gone')),
      /^log\.sasl\.passwordFile: .*gone: there is no such file/,
    )
    assert.match(await fault(from(`passwordFile: ${file('empty', '\n')}`)), /empty: the file is empty/)
    assert.match(await fault(from('passwordFile: .')), /^log\.sasl\.passwordFile: .* cannot be read/)
    // Somebody may have put the password itself there.
    assert.equal(
      await fault(from('passwordEnv: hunter2')),
      'log.sasl.passwordEnv: the environment variable of that name is not set',
    )
  })

  test('a registry is asked with its user and password', async () => {
    const set = [
      'log.registry={url: "https://registry.example/api/", username: bob, passwordEnv: GRASP_TEST_PASSWORD}',
    ]
    const { codec } = await settings(set, { GRASP_TEST_PASSWORD: 'hunter2' })
    assert.equal(typeof codec?.prepareToEncode, 'function')
    assert.match(await fault(set), /log\.registry\.passwordEnv: the environment variable GRASP_TEST_PASSWORD/)
    const registry = await openRegistry(loadConfig({ cwd: folder, set }), { GRASP_TEST_PASSWORD: 'hunter2' })
    assert.equal(registry?.url, 'https://registry.example/api')
    assert.doesNotMatch(inspect(registry, { depth: 9, showHidden: true }), /hunter2|aHVudGVyMg|Ym9i/)
    assert.equal(
      await openRegistry(loadConfig({ cwd: folder, set: [...set, 'log.kind=embedded'] }), {}),
      undefined,
    )
  })

  test('TLS may be without any file', async () => {
    assert.equal((await settings()).ssl, undefined)
    assert.deepEqual((await settings(['log.tls.enabled=true'])).ssl, {})
    assert.deepEqual((await settings(['log.tls.servername=kafka.example'])).ssl, {
      servername: 'kafka.example',
    })
    assert.equal(
      (await settings(['log.tls.servername=kafka.example', 'log.tls.enabled=false'])).ssl,
      undefined,
    )
  })

  describe('certificates', { skip: openssl }, () => {
    let ca: string
    let own: { cert: string; key: string }
    let other: { cert: string; key: string }
    let old: { ca: string; cert: string; key: string }
    before(async () => {
      const authority = await makeAuthority(folder, 'authority')
      ca = authority.cert
      own = await authority.issue('own')
      other = await authority.issue('other')
      old = { ca: await authority.expired(), ...(await authority.issue('old', -1)) }
    })
    const set = (files: Record<string, string>) =>
      Object.entries(files).map(([key, path]) => `log.tls.${key}=${path}`)

    test('are read', async () => {
      const { ssl } = await settings(set({ ca, ...own }))
      assert.deepEqual(ssl, {
        ca: await readFile(ca, 'utf8'),
        cert: await readFile(own.cert, 'utf8'),
        key: await readFile(own.key, 'utf8'),
      })
    })

    test('that have expired are told, but not one authority of several', async () => {
      assert.match(
        await fault(set({ ca: old.ca })),
        /^log\.tls\.ca: .*ca-expired\.pem: expired on .*; renew it/,
      )
      const { cert, key } = old
      assert.match(await fault(set({ ca, cert, key })), /^log\.tls\.cert: .*old\.pem: expired on /)
      const both = file('both.pem', (await readFile(old.ca, 'utf8')) + (await readFile(ca, 'utf8')))
      assert.ok(await settings(set({ ca: both })))
      const chain = file('chain.pem', (await readFile(own.cert, 'utf8')) + (await readFile(old.ca, 'utf8')))
      assert.ok(await settings(set({ ca, cert: chain, key: own.key })))
    })

    test('that are not there, are something else or do not belong together are told', async () => {
      assert.match(await fault(set({ ca: 'gone.pem' })), /^log\.tls\.ca: .*gone\.pem: there is no such file/)
      assert.match(await fault(set({ ca: own.key })), /^log\.tls\.ca: .*own\.key: holds no PEM certificate/)
      assert.match(
        await fault(set({ cert: own.key, key: own.cert })),
        /log\.tls\.cert: .*holds no PEM certificate/,
      )
      assert.match(
        await fault(set({ cert: own.cert, key: other.key })),
        /^log\.tls: .*cannot be used: .*mismatch/,
      )
      // Somebody may have put the key itself there.
      const text = 'log.tls.key=-----BEGIN PRIVATE KEY-----hunter2'
      assert.match(
        await fault([...set({ cert: own.cert }), text]),
        /^log\.tls\.key holds the PEM text itself/,
      )
      const damaged = file('damaged.pem', '-----BEGIN CERTIFICATE-----\nhunter2\n-----END CERTIFICATE-----\n')
      assert.match(await fault(set({ ca: damaged })), /^log\.tls\.ca: .*certificate 1 is damaged/)
      const locked = file(
        'locked.pem',
        '-----BEGIN ENCRYPTED PRIVATE KEY-----\nhunter2\n-----END ENCRYPTED PRIVATE KEY-----\n',
      )
      assert.match(await fault(set({ cert: own.cert, key: locked })), /^log\.tls\.key: .*is encrypted/)
    })
  })
})
