import assert from 'node:assert/strict'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import { kafkaChecks } from '../../../cli/doctor/kafka.ts'
import { loadConfig } from '../../../pipelines/config/load.ts'
import { findKafka } from '../../helpers/kafka-broker.ts'

const kafka = await findKafka()

describe('doctor on Kafka', () => {
  let folder: string
  before(() => {
    folder = mkdtempSync(join(tmpdir(), 'grasp-doctor-'))
    writeFileSync(
      join(folder, 'grasp.yaml'),
      'run: lab\nmodel: { path: m }\ndata: { train: t.json }\njudge: { kind: lexical }\n',
    )
    process.env.GRASP_TEST_DOCTOR = 'hunter2'
  })
  after(async () => {
    delete process.env.GRASP_TEST_DOCTOR
    rmSync(folder, { recursive: true })
    if (kafka.brokers !== undefined) await kafka.release()
  })
  const checks = (...set: string[]) =>
    kafkaChecks(loadConfig({ cwd: folder, set: ['log.kind=kafka', ...set] }))

  test('a cluster that answers is fine', {
    skip: kafka.brokers === undefined ? kafka.skip : false,
  }, async () => {
    const brokers = kafka.brokers!.join(',')
    assert.deepEqual(await checks(`log.brokers=${brokers}`), [
      {
        name: 'log.brokers',
        ok: true,
        detail: `${kafka.brokers!.join(', ')} answer (without TLS, without login)`,
      },
    ])
  })

  test('brokers and a registry that do not answer are told, without the passwords', async () => {
    const found = await checks(
      'log.brokers=127.0.0.1:1',
      'log.sasl={mechanism: plain, username: bob, passwordEnv: GRASP_TEST_DOCTOR}',
      'log.registry={url: "http://127.0.0.1:1", username: bob, passwordEnv: GRASP_TEST_DOCTOR, waitMs: 0}',
    )
    assert.deepEqual(
      found.map(({ name, ok }) => [name, ok]),
      [
        ['log.brokers', false],
        ['log.registry', false],
      ],
    )
    assert.match(found[0]!.detail, /no broker answers there/)
    assert.match(found[1]!.detail, /schema registry at http:\/\/127\.0\.0\.1:1 cannot be reached/)
    assert.doesNotMatch(JSON.stringify(found), /hunter2/)
  })

  test('a password that is not there is told', async () => {
    const [found] = await checks(
      'log.brokers=127.0.0.1:1',
      'log.sasl={mechanism: plain, username: bob, passwordEnv: GRASP_TEST_ABSENT}',
    )
    assert.equal(found!.ok, false)
    assert.match(
      found!.detail,
      /log\.sasl\.passwordEnv: the environment variable GRASP_TEST_ABSENT is not set/,
    )
  })
})
