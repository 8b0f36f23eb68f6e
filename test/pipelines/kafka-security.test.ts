/** TLS and logging in, from the configuration to a real broker. */
import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { inspect } from 'node:util'
import { openKafkaLog } from '../../bus/kafka/log.ts'
import { GraspError } from '../../errors/grasp-error.ts'
import { loadConfig } from '../../pipelines/config/load.ts'
import { kafkaSettings } from '../../pipelines/kafka-settings.ts'
import { gather, question, questionOutput } from '../bus/samples.ts'
import { hasOpenssl, makeAuthority } from '../helpers/certificates.ts'
import { lacksOwnKafka } from '../helpers/kafka-broker.ts'
import { KafkaProcess } from '../helpers/kafka-process.ts'
import { writeTinyModel } from '../helpers/tiny-model.ts'

const lacking =
  (await lacksOwnKafka()) ?? ((await hasOpenssl()) ? undefined : 'needs openssl to make certificates')

const PASSWORD = 'hunter2-of-bob'

describe('TLS and SASL', { skip: lacking ?? false }, () => {
  let folder: string
  let kafka: KafkaProcess
  let files: {
    ca: string
    expiredCa: string
    otherCa: string
    cert: string
    key: string
    otherCert: string
    otherKey: string
  }

  before(async () => {
    folder = mkdtempSync(join(tmpdir(), 'grasp-security-'))
    const authority = await makeAuthority(folder, 'authority')
    const stranger = await makeAuthority(folder, 'stranger')
    const broker = await authority.issue('broker')
    const client = await authority.issue('client')
    const foreign = await stranger.issue('foreign')
    const stale = await authority.issue('stale', -1)
    files = {
      ca: authority.cert,
      expiredCa: await authority.expired(),
      otherCa: stranger.cert,
      ...client,
      otherCert: foreign.cert,
      otherKey: foreign.key,
    }
    const keystore = async (own: { cert: string; key: string }, name: string) => {
      const texts = [own.key, own.cert, authority.cert].map(file => readFile(file, 'utf8'))
      writeFileSync(join(folder, name), (await Promise.all(texts)).join(''))
      return join(folder, name)
    }
    const plain = 'org.apache.kafka.common.security.plain.PlainLoginModule required'
    const scram = 'org.apache.kafka.common.security.scram.ScramLoginModule required;'
    const logins = Object.fromEntries(
      ['login', 'loginclear'].flatMap(name => [
        [`listener.name.${name}.plain.sasl.jaas.config`, `${plain} user_bob="${PASSWORD}";`],
        [`listener.name.${name}.scram-sha-256.sasl.jaas.config`, scram],
        [`listener.name.${name}.scram-sha-512.sasl.jaas.config`, scram],
      ]),
    )
    kafka = await KafkaProcess.create({
      listeners: { LOGIN: 'SASL_SSL', LOGINCLEAR: 'SASL_PLAINTEXT', MUTUAL: 'SSL', STALE: 'SSL' },
      settings: {
        'ssl.keystore.type': 'PEM',
        'ssl.keystore.location': await keystore(broker, 'keystore.pem'),
        'listener.name.stale.ssl.keystore.location': await keystore(stale, 'stale.pem'),
        'ssl.truststore.type': 'PEM',
        'ssl.truststore.location': authority.cert,
        'listener.name.mutual.ssl.client.auth': 'required',
        'sasl.enabled.mechanisms': 'PLAIN,SCRAM-SHA-256,SCRAM-SHA-512',
        ...logins,
      },
      format: ['SCRAM-SHA-256', 'SCRAM-SHA-512'].flatMap(mechanism => [
        '--add-scram',
        `${mechanism}=[name=bob,password=${PASSWORD}]`,
      ]),
    })
    await kafka.start()
    await writeTinyModel(join(folder, 'm'))
    writeFileSync(join(folder, 't.json'), '[]')
    writeFileSync(
      join(folder, 'grasp.yaml'),
      'run: lab\nmodel: { path: m }\ndata: { train: t.json }\njudge: { kind: lexical }\n',
    )
  })
  after(async () => {
    await kafka?.stop()
    rmSync(folder, { recursive: true, force: true })
  })

  const open = async (listener: string, set: string[], password = PASSWORD) => {
    const address = `log.brokers=${kafka.addresses[listener]}`
    const config = loadConfig({ cwd: folder, set: ['log.kind=kafka', address, ...set] })
    return openKafkaLog(await kafkaSettings(config, { BOB: password }))
  }
  const login = (mechanism: string) => `log.sasl={mechanism: ${mechanism}, username: bob, passwordEnv: BOB}`

  /** A record goes in and comes out: written outside and inside transactions. */
  async function use(listener: string, run: string, set: string[]): Promise<void> {
    const log = await open(listener, [`run=${run}`, ...set])
    try {
      await log.append([questionOutput('q1')])
      await log.commit({ group: 'g', outputs: [questionOutput('q2')], positions: [] })
      const values = (await gather(log.scan('questions'))).map(({ value }) => value)
      assert.deepEqual(values, [question('q1'), question('q2')])
    } finally {
      await log.close()
    }
  }

  async function refused(
    listener: string,
    set: string[],
    expected: RegExp,
    password?: string,
  ): Promise<void> {
    const error = await open(listener, set, password).then(
      log => log.close(),
      error => error,
    )
    assert.ok(error instanceof GraspError, inspect(error))
    assert.equal(error.code, expected.source.startsWith('^log') ? 'CONFIG_INVALID' : 'LOG_UNAVAILABLE')
    assert.match(error.message, expected)
    assert.doesNotMatch(inspect(error, { depth: 9 }), /hunter2/)
  }

  for (const mechanism of ['plain', 'scram-sha-256', 'scram-sha-512']) {
    test(`${mechanism} over TLS`, () =>
      use('LOGIN', `secure-${mechanism}`, [`log.tls.ca=${files.ca}`, login(mechanism)]))
  }

  test('scram without TLS', () => use('LOGINCLEAR', 'clear', [login('scram-sha-256')]))

  test('mTLS', () =>
    use('MUTUAL', 'mutual', [
      `log.tls.ca=${files.ca}`,
      `log.tls.cert=${files.cert}`,
      `log.tls.key=${files.key}`,
    ]))

  test('a wrong password is refused, whatever the mechanism, and not shown', async () => {
    for (const mechanism of ['plain', 'scram-sha-256', 'scram-sha-512']) {
      const set = [`log.tls.ca=${files.ca}`, login(mechanism)]
      await refused('LOGIN', set, /the broker refused the login .*check log\.sasl/, 'hunter2-wrong')
    }
  })

  test('no login where one is needed is told', () =>
    refused('LOGIN', [`log.tls.ca=${files.ca}`], /the broker hung up .*log\.sasl/))

  test('an untrusted authority is told', async () => {
    const told = /no trusted TLS connection \(self-signed certificate.*check log\.tls\.ca, which names/
    await refused('LOGIN', [`log.tls.ca=${files.otherCa}`, login('plain')], told)
    await refused('LOGIN', ['log.tls.enabled=true', login('plain')], told)
  })

  test('what has expired is told: the certificate of the broker, or of the authority', async () => {
    const told = /no trusted TLS connection \(certificate has expired\); renew .* check log\.tls\.ca/
    await refused('STALE', [`log.tls.ca=${files.ca}`], told)
    await refused('LOGIN', [`log.tls.ca=${files.expiredCa}`, login('plain')], /^log\.tls\.ca: .*expired on /)
  })

  test('another name in the certificate is told', () =>
    refused(
      'LOGIN',
      [`log.tls.ca=${files.ca}`, 'log.tls.servername=other.example', login('plain')],
      /no trusted TLS connection .*name the server in log\.tls\.servername/,
    ))

  test('no certificate, or one of a stranger, where one is needed is told', async () => {
    // Where the broker's reset is quicker than its reason, that is all there is to tell.
    const told =
      /no trusted TLS .*check log\.tls\.cert and log\.tls\.key$|the broker hung up .*check .*log\.tls/
    await refused('MUTUAL', [`log.tls.ca=${files.ca}`], told)
    const foreign = [`log.tls.cert=${files.otherCert}`, `log.tls.key=${files.otherKey}`]
    await refused('MUTUAL', [`log.tls.ca=${files.ca}`, ...foreign], told)
  })

  test('TLS to a listener without it, and none to one that has it, is told', async () => {
    await refused(
      'LOGINCLEAR',
      [`log.tls.ca=${files.ca}`, login('scram-sha-256')],
      /no trusted TLS connection .*speaks no TLS there; check log\.tls/,
    )
    await refused('LOGIN', [login('scram-sha-256')], /the broker hung up .*log\.tls/)
  })

  test('the command line shows no password, whatever it is asked and whether it is right or wrong', async () => {
    writeFileSync(join(folder, 'password'), 'hunter2-wrong\n')
    const settings = ['--set', 'log.kind=kafka', '--set', `log.brokers=${kafka.addresses.LOGIN}`]
    settings.push('--set', `log.tls.ca=${files.ca}`, '--set')
    const right = login('scram-sha-256')
    const wrong = 'log.sasl={mechanism: plain, username: bob, passwordFile: password}'
    const talkative = ['--json', '--log-level', 'debug']
    const cases: readonly [readonly string[], number, RegExp][] = [
      [['topics', 'create', ...talkative, ...settings, right], 0, /questions/],
      [['lag', ...talkative, ...settings, right], 0, /filtering/],
      [['topics', 'create', ...talkative, ...settings, wrong], 1, /LOG_UNAVAILABLE.*check log\.sasl/],
      [['run', 'filtering', ...talkative, ...settings, wrong], 1, /refused the login.*check log\.sasl/],
      [
        ['doctor', ...talkative, '--config', 'grasp.yaml', ...settings, wrong],
        1,
        /refused the login.*log\.sasl/,
      ],
      [
        ['topics', 'create', ...talkative, ...settings, login('plain').replace('BOB', 'ABSENT')],
        2,
        /ABSENT is not set/,
      ],
    ]
    for (const [args, code, expected] of cases) {
      const outcome = await command(args, folder, { BOB: PASSWORD })
      assert.equal(outcome.code, code, outcome.output)
      assert.match(outcome.output, expected)
      for (const secret of ['hunter2', Buffer.from(PASSWORD).toString('base64').slice(0, 12)])
        assert.ok(!outcome.output.includes(secret), `${args[0]} shows a password`)
    }
  })
})

/** Runs the command line; the password is in its environment. */
function command(
  args: readonly string[],
  cwd: string,
  env: NodeJS.ProcessEnv,
): Promise<{ code: number | string | null; output: string }> {
  const binary = fileURLToPath(new URL('../../bin/grasp.js', import.meta.url))
  return new Promise(resolve => {
    const options = { cwd, env: { ...process.env, ...env } }
    execFile(process.execPath, [binary, ...args], options, (error, stdout, stderr) =>
      resolve({ code: error === null ? 0 : (error.code ?? null), output: stdout + stderr }),
    )
  })
}
