/** Compressed records on a real Kafka: our codecs, and the brokers' own in both directions. */
import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { createRequire } from 'node:module'
import { tmpdir } from 'node:os'
import { join, parse } from 'node:path'
import { after, afterEach, describe, test } from 'node:test'
import { setTimeout } from 'node:timers/promises'
import kafkajs, { Kafka, logLevel } from 'kafkajs'
import { compressionType, registerCodecs } from '../../../bus/kafka/compression.ts'
import { openKafkaLog } from '../../../bus/kafka/log.ts'
import { Names } from '../../../bus/kafka/names.ts'
import type { Compression } from '../../../bus/kafka/options.ts'
import { type Output, output } from '../../../bus/port.ts'
import { findKafka } from '../../helpers/kafka-broker.ts'
import { all, gather, letter, question, questionOutput } from '../samples.ts'

const CODECS = ['gzip', 'snappy', 'lz4'] as const
const CREDITS = { records: 1000, bytes: 64 << 20 }
/** Finds packages where there are none: right below the root, since the temporary folder may hold some. */
const elsewhere = createRequire(join(parse(tmpdir()).root, 'grasp-no-packages', 'none.js'))

const kafka = await findKafka()

describe('compression', { skip: kafka.brokers === undefined ? kafka.skip : false }, () => {
  after(async () => kafka.brokers !== undefined && kafka.release())
  afterEach(() => registerCodecs())
  const brokers = [...(kafka.brokers ?? [])]
  const open = (run: string, compression: Compression) =>
    openKafkaLog({ brokers, run, prefix: 'test', compression })

  /** What the brokers keep a topic in, whatever it was sent in. */
  async function keepIn(run: string, codec: string): Promise<void> {
    const admin = new Kafka({ brokers, logLevel: logLevel.NOTHING }).admin()
    await admin.connect()
    const configEntries = [
      { name: 'compression.type', value: codec },
      { name: 'max.message.bytes', value: String(8 << 20) },
      { name: 'cleanup.policy', value: 'delete' },
      { name: 'retention.ms', value: '-1' },
      { name: 'retention.bytes', value: '-1' },
    ]
    const type = kafkajs.ConfigResourceTypes.TOPIC
    const topic = new Names('test', run)
    const resources = (['questions', 'deadletters'] as const).map(each => ({
      type,
      name: topic.topic(each),
      configEntries,
    }))
    await admin.alterConfigs({ validateOnly: false, resources })
    // The controller answers before the brokers go by it.
    const described = resources.map(({ type, name }) => ({ type, name, configNames: ['compression.type'] }))
    for (let known = 0; known < resources.length; ) {
      const { resources: found } = await admin.describeConfigs({
        resources: described,
        includeSynonyms: false,
      })
      known = found.filter(({ configEntries }) => configEntries[0]?.configValue === codec).length
      if (known < resources.length) await setTimeout(50)
    }
    await admin.disconnect()
  }

  async function write(run: string, compression: Compression, outputs: readonly Output[]): Promise<void> {
    const log = await open(run, compression)
    const half = Math.floor(outputs.length / 2)
    await log.append(outputs.slice(0, half))
    await log.commit({ group: 'g', outputs: outputs.slice(half), positions: [] })
    // Brokers answer before they have marked a transaction everywhere; others see it from then on.
    await log.topics()
    await log.close()
  }

  /** A process that writes without compression reads, both ways of reading. */
  async function assertReads(run: string, outputs: readonly Output[]): Promise<void> {
    const log = await open(run, 'none')
    try {
      for (const topic of ['questions', 'deadletters'] as const) {
        const expected = outputs.filter(each => each.topic === topic).map(({ value }) => value)
        const scanned = (await gather(log.scan(topic))).map(({ value }) => value)
        assert.deepEqual(scanned, expected)
        const read = await all(log.read(topic, { group: 'g', credits: CREDITS, until: 'end' }))
        assert.deepEqual(
          read.map(({ value }) => value),
          expected,
        )
      }
    } finally {
      await log.close()
    }
  }

  /** Many small records, an empty text, texts that repeat, and megabytes that no codec makes smaller. */
  function samples(): Output[] {
    const noise = new Uint8Array(3 << 20)
    for (let i = 0, state = 1; i < noise.length; i++) {
      state = (Math.imul(state, 1664525) + 1013904223) | 0
      noise[i] = state >>> 24
    }
    return [
      ...Array.from({ length: 300 }, (_, i) => questionOutput(`q${i}`)),
      output('questions', 'empty', question('empty', '')),
      output('questions', 'long', question('long', 'ginger and lime. '.repeat(60_000))),
      output('deadletters', 'noise', letter('noise', noise)),
      output('deadletters', 'zeros', letter('zeros', new Uint8Array(3 << 20))),
      output('deadletters', 'nothing', letter('nothing', new Uint8Array())),
    ]
  }

  for (const codec of CODECS) {
    test(`${codec}: what is written is read`, async () => {
      const run = randomUUID()
      await write(run, codec, samples())
      await assertReads(run, samples())
    })

    test(`${codec}: what the brokers compressed is read, and they can read ours`, async () => {
      const [theirs, ours] = [randomUUID(), randomUUID()]
      for (const [run, kept, sent] of [
        [theirs, codec, 'none'],
        [ours, 'uncompressed', codec],
      ] as const) {
        await (await open(run, 'none')).close()
        await keepIn(run, kept)
        await write(run, sent, samples())
        // Nothing that we installed takes part in reading what the brokers were to decompress.
        if (kept === 'uncompressed') registerCodecs(elsewhere)
        await assertReads(run, samples())
      }
    })
  }

  for (const [codec, name] of [
    ['snappy', 'kafkajs-snappy'],
    ['lz4', '@2l/kafkajs-lz4'],
  ] as const) {
    test(`${codec}: without its package, writers and readers say which one is missing`, async () => {
      const run = randomUUID()
      await write(run, codec, [questionOutput('q1'), questionOutput('q2')])
      assert.throws(() => compressionType(codec, elsewhere), {
        code: 'CONFIG_INVALID',
        message: new RegExp(
          `^log\\.compression: ${codec} needs the package ${name} \\(Cannot find module .*; .npm install ${name}`,
        ),
      })
      const told = {
        code: 'LOG_UNAVAILABLE',
        message: new RegExp(`records compressed with ${codec}, which needs the package ${name}.*npm install`),
      }
      const log = await open(run, 'none')
      try {
        registerCodecs(elsewhere)
        // The run's notes are compressed too.
        await assert.rejects(open(run, 'none'), told)
        await assert.rejects(gather(log.scan('questions')), told)
        await assert.rejects(all(log.read('questions', { group: 'g', credits: CREDITS, until: 'end' })), told)
        // Once it is there, nothing is lost.
        registerCodecs()
        assert.equal((await gather(log.scan('questions'))).length, 2)
      } finally {
        await log.close()
      }
    })
  }

  test('records in a codec that nobody here reads are told', async () => {
    const run = randomUUID()
    await (await open(run, 'none')).close()
    await keepIn(run, 'zstd')
    await write(run, 'none', [questionOutput('q1'), questionOutput('q2')])
    const log = await open(run, 'none')
    try {
      await assert.rejects(gather(log.scan('questions')), {
        code: 'LOG_UNAVAILABLE',
        message: /holds records compressed with zstd, which cannot be read/,
      })
    } finally {
      await log.close()
    }
  })
})
