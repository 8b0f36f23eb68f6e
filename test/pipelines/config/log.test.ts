import assert from 'node:assert/strict'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import { GraspError } from '../../../errors/grasp-error.ts'
import { configHash } from '../../../pipelines/config/identity.ts'
import { loadConfig } from '../../../pipelines/config/load.ts'
import { tlsEnabled } from '../../../pipelines/config/log.ts'

const MINIMAL = 'run: lab\nmodel: { path: m }\ndata: { train: t.json }\njudge: { kind: lexical }\n'
const KAFKA = ['log.kind=kafka', 'log.brokers=127.0.0.1:9092']

describe('the section log', () => {
  let folder: string
  before(() => {
    folder = mkdtempSync(join(tmpdir(), 'grasp-log-config-'))
    for (const file of ['t.json', 'p.md']) writeFileSync(join(folder, file), '[]')
  })
  after(() => rmSync(folder, { recursive: true }))

  function load(set: string[], log = '') {
    writeFileSync(join(folder, 'grasp.yaml'), `${MINIMAL}${log}`)
    return loadConfig({ cwd: folder, set })
  }
  function fault(set: string[], log = ''): string {
    try {
      load(set, log)
    } catch (error) {
      assert.ok(error instanceof GraspError)
      assert.equal(error.code, 'CONFIG_INVALID')
      return error.message
    }
    assert.fail('expected an error')
  }

  test('is embedded by default, and two keys move a file that does not have it to Kafka', () => {
    assert.equal(load([]).log.kind, 'embedded')
    const { log } = load(KAFKA)
    assert.equal(log.kind, 'kafka')
    assert.deepEqual(log.brokers, ['127.0.0.1:9092'])
    assert.equal(log.partitions, 1)
    assert.equal(log.compression, 'none')
    assert.equal(tlsEnabled(log.tls), false)
  })

  test('the keys of the other kind rest, so that one word moves a run there and back', () => {
    const both = 'log: { kind: kafka, path: logs, brokers: "a:1" }\n'
    assert.equal(load(['log.kind=embedded'], both).log.path, join(folder, 'logs'))
    assert.equal(load([], both).log.kind, 'kafka')
  })

  test('timeouts have defaults, and bounds that brokers set', () => {
    const { timeouts } = load([...KAFKA, 'log.timeouts.stuck=3600000']).log
    assert.equal(timeouts.stuck, 3_600_000)
    assert.equal(timeouts.session, 45_000)
    assert.match(fault(['log.timeouts.session=5999']), /log\.timeouts\.session is 5999; expected .*6000/)
    assert.match(fault(['log.timeouts.stuck=0']), /log\.timeouts\.stuck is 0/)
    assert.match(
      fault(['log.timeouts.stucked=1']),
      /log\.timeouts\.stucked is not .* did you mean log\.timeouts\.stuck\?/,
    )
  })

  test('brokers are a list or one text with commas', () => {
    const brokers = (text: string) => load(['log.kind=kafka', `log.brokers=${text}`]).log.brokers
    assert.deepEqual(brokers('a:1,b.example:65535, 10.0.0.1:3'), ['a:1', 'b.example:65535', '10.0.0.1:3'])
    assert.deepEqual(brokers('[a:1, "[::1]:9092"]'), ['a:1', '[::1]:9092'])
    assert.deepEqual(load(['log.kind=kafka'], 'log:\n  brokers:\n    - a:1\n    - b:2\n').log.brokers, [
      'a:1',
      'b:2',
    ])
  })

  const wrong: [string, string[], RegExp][] = [
    [
      'no brokers',
      ['log.kind=kafka'],
      /^grasp\.yaml: log\.brokers is missing, but log\.kind is kafka; expected HOST:PORT or a list of at least 1: each HOST:PORT$/,
    ],
    ['a broker without a port', [...KAFKA, 'log.brokers=h'], /log\.brokers has 'h', which is not HOST:PORT/],
    ['a port beyond', [...KAFKA, 'log.brokers=h:65536'], /log\.brokers has 'h:65536'/],
    ['port 0', [...KAFKA, 'log.brokers=h:0'], /log\.brokers has 'h:0'/],
    ['an empty address', [...KAFKA, 'log.brokers=h:1,'], /log\.brokers has an empty address/],
    ['a URL', [...KAFKA, 'log.brokers=kafka://h:1'], /log\.brokers has 'kafka:\/\/h:1'/],
    ['a number', [...KAFKA, 'log.brokers=9092'], /log\.brokers is 9092; expected HOST:PORT/],
    ['another kind', ['log.kind=kafkaa'], /log\.kind is 'kafkaa'; expected one of 'embedded', 'kafka'/],
    ['a prefix no topic may have', [...KAFKA, 'log.prefix=a b'], /log\.prefix is 'a b'; expected a name/],
    [
      'no replicas',
      [...KAFKA, 'log.replication=0'],
      /log\.replication is 0; expected an integer from 1 to 32/,
    ],
    [
      'an unknown compression',
      [...KAFKA, 'log.compression=zstd'],
      /log\.compression is 'zstd'; expected one of/,
    ],
    [
      'a certificate alone',
      [...KAFKA, 'log.tls.cert=c.pem'],
      /log\.tls\.key is missing, but log\.tls\.cert is set/,
    ],
    ['a key alone', [...KAFKA, 'log.tls.key=k.pem'], /log\.tls\.cert is missing, but log\.tls\.key is set/],
    [
      'a mistyped key',
      [...KAFKA, 'log.tls.certificate=k.pem'],
      /log\.tls\.certificate is not a configuration key/,
    ],
    [
      'a user without a password',
      [...KAFKA, 'log.sasl={mechanism: plain, username: u}'],
      /log\.sasl\.passwordEnv or log\.sasl\.passwordFile is missing/,
    ],
    [
      'two passwords',
      [...KAFKA, 'log.sasl={mechanism: plain, username: u, passwordEnv: A, passwordFile: b}'],
      /log\.sasl\.passwordEnv and log\.sasl\.passwordFile are both set/,
    ],
    [
      'another mechanism',
      [...KAFKA, 'log.sasl={mechanism: gssapi, username: u, passwordEnv: A}'],
      /log\.sasl\.mechanism is 'gssapi'; expected one of 'plain', 'scram-sha-256', 'scram-sha-512'/,
    ],
    [
      'a password in clear over a network',
      [
        'log.kind=kafka',
        'log.brokers=127.0.0.1:1,far:9',
        'log.sasl={mechanism: plain, username: u, passwordEnv: A}',
      ],
      /log\.sasl\.mechanism is plain, which would send the password to far:9 in clear/,
    ],
    ['a registry without address', [...KAFKA, 'log.registry.timeoutMs=1'], /log\.registry\.url is missing/],
    [
      'a registry of another protocol',
      [...KAFKA, 'log.registry.url=ftp://h'],
      /log\.registry\.url is 'ftp:\/\/h'/,
    ],
    [
      'a registry with a query',
      [...KAFKA, 'log.registry.url=http://h/api?token=hunter2'],
      /log\.registry\.url has a query or a fragment/,
    ],
    [
      'a registry password in clear over a network',
      [...KAFKA, 'log.registry={url: "http://far", username: u, passwordEnv: A}'],
      /log\.registry\.url is http to another machine/,
    ],
    [
      'a registry password without a user',
      [...KAFKA, 'log.registry={url: "https://far", passwordEnv: A}'],
      /log\.registry\.username is missing/,
    ],
    [
      'certificates for a registry without TLS',
      [...KAFKA, 'log.registry={url: "http://127.0.0.1", tls: {ca: a}}'],
      /log\.registry\.url is http, but log\.registry\.tls is set/,
    ],
    [
      'slices larger than messages',
      [...KAFKA, 'log.maxMessageBytes=1048575'],
      /scoring\.sliceBytes is more than log\.maxMessageBytes allows/,
    ],
  ]
  for (const [name, set, expected] of wrong) test(`names ${name}`, () => assert.match(fault(set), expected))

  test('a password in clear to this machine, by permission, by TLS or by SCRAM is fine', () => {
    const login = (mechanism: string) => `log.sasl={mechanism: ${mechanism}, username: u, passwordEnv: A}`
    load([...KAFKA, login('plain')])
    load([...KAFKA, 'log.brokers=far:1', login('plain'), 'log.sasl.allowInsecure=true'])
    load([...KAFKA, 'log.brokers=far:1', login('plain'), 'log.tls.enabled=true'])
    load([...KAFKA, 'log.brokers=far:1', login('plain'), 'log.tls.ca=ca.pem'])
    load([...KAFKA, 'log.brokers=far:1', login('scram-sha-256')])
  })

  test('no secret put in the wrong place is repeated by an error', () => {
    const cases: [string[], string?][] = [
      [[...KAFKA, 'log.sasl.password=hunter2']],
      [[...KAFKA, 'log.sasl.passwordEnv=hunter2!']],
      [[...KAFKA, 'log.sasl={mechanism: plain, username: u, password: hunter2}']],
      [[...KAFKA, 'log.sasl={"password":"hunter2"']],
      [[...KAFKA, 'log.sasl=hunter2']],
      [[...KAFKA, 'log.sasl=bob:hunter2']],
      [[...KAFKA, 'log.sasl=[bob, hunter2]']],
      [[...KAFKA, 'log.sasl.token=hunter2']],
      [[...KAFKA, 'log.sasl.pw=hunter2']],
      [[...KAFKA, 'log.sasl={mechanism: plain username: hunter2']],
      [[...KAFKA, 'log.registry=bob:hunter2']],
      [[...KAFKA, 'log.registry={token: hunter2}']],
      [[...KAFKA, 'log.tls={key: "-----BEGIN PRIVATE KEY-----hunter2"}']],
      [KAFKA, 'log: { sasl: "bob:hunter2" }\n'],
      [KAFKA, 'log: { registry: [bob, hunter2] }\n'],
      [[...KAFKA, 'log.registry.url=http://user:hunter2@h']],
      [[...KAFKA, 'log.registry.url=ftp://user:hunter2@h']],
      [[...KAFKA, 'log.registry.url=http://h/api?token=hunter2']],
      [[...KAFKA, 'log.brokers=user:hunter2@h:9092']],
      [[...KAFKA, 'log.brokers=kafka://user:hunter2@h:9092']],
      [KAFKA, 'log: { sasl: { mechanism: plain, username: u, password: hunter2 } }\n'],
      [KAFKA, 'log: { sasl: { mechanism: plain, username: u, passwordEnv: "hunter2 " } }\n'],
      [KAFKA, 'log: { registry: { url: "https://u:hunter2@h/" } }\n'],
    ]
    for (const [set, log] of cases) {
      const message = fault(set, log)
      assert.doesNotMatch(message, /hunter2/)
      assert.match(message, /log\./)
    }
  })

  test('files are relative to the configuration file, given by --set to the working directory', () => {
    const { log } = load(
      [...KAFKA, 'log.sasl={mechanism: plain, username: u, passwordFile: p}'],
      'log: { tls: { ca: ca.pem } }\n',
    )
    assert.equal(log.tls.ca, join(folder, 'ca.pem'))
    assert.equal(log.sasl?.passwordFile, join(folder, 'p'))
  })

  test('where the log is does not belong to the identity', async () => {
    const hash = await configHash(load(['prompt=p.md']))
    const kafka = load([
      ...KAFKA,
      'prompt=p.md',
      'log.partitions=4',
      'log.sasl={mechanism: plain, username: u, passwordEnv: A}',
    ])
    assert.equal(await configHash(kafka), hash)
  })
})
