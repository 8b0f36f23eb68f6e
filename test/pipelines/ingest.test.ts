import assert from 'node:assert/strict'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, beforeEach, describe, test } from 'node:test'
import pino from 'pino'
import type { Log } from '../../bus/port.ts'
import { loadConfig } from '../../pipelines/config/load.ts'
import type { ProgressEvent } from '../../pipelines/events.ts'
import { ingest } from '../../pipelines/ingest.ts'
import { openRunLog } from '../../pipelines/run-log.ts'
import type { Topic } from '../../schemas/types.ts'
import { tinyItem } from '../helpers/tiny-run.ts'

describe('ingest', () => {
  let folder: string
  let run = 0
  let warnings: string[] = []
  before(() => {
    folder = mkdtempSync(join(tmpdir(), 'grasp-ingest-'))
    const bad = tinyItem('bad', { profile: [] })
    write('train.json', [
      tinyItem('a'),
      bad,
      ...Array.from({ length: 700 }, (_, i) => tinyItem(`t${i}`)),
      bad,
    ])
    write('test.json', [tinyItem('h0'), tinyItem('a'), tinyItem('h1')])
    writeFileSync(
      join(folder, 'grasp.yaml'),
      'run: x\nmodel: { path: m }\ndata: { train: train.json, test: test.json }\njudge: { kind: lexical }\n',
    )
  })
  after(() => rmSync(folder, { recursive: true }))
  beforeEach(() => {
    run++
    warnings = []
  })

  function write(name: string, items: unknown[]): void {
    writeFileSync(join(folder, name), JSON.stringify(items))
  }
  const load = (...set: string[]) => loadConfig({ cwd: folder, set: [`run=run${run}`, ...set] })
  async function withLog<T>(set: string[], work: (log: Log, start: StartIngest) => Promise<T>): Promise<T> {
    const config = load(...set)
    const log = await openRunLog(config)
    const logger = pino({ level: 'warn' }, { write: line => warnings.push(line) })
    const start: StartIngest = (watch = () => {}, signal) =>
      ingest({ config, log, logger, progress: watch }, signal)
    try {
      return await work(log, start)
    } finally {
      await log.close()
    }
  }
  type StartIngest = (
    watch?: (event: ProgressEvent) => void,
    signal?: AbortSignal,
  ) => ReturnType<typeof ingest>
  async function keys(log: Log, topic: Topic): Promise<string[]> {
    const found: string[] = []
    for await (const { key } of log.scan(topic)) found.push(key)
    return found
  }
  const sealed = async (log: Log) => (await log.topics()).find(({ topic }) => topic === 'questions')?.sealed

  const QUESTIONS = ['a', ...Array.from({ length: 700 }, (_, i) => `t${i}`), 'h0', 'h1']
  const FAILURES = ['train:2', 'train:703', 'test:2']

  test('splits follow one another, in the order of their files, and the topic is sealed', () =>
    withLog([], async (log, start) => {
      let last: ProgressEvent | undefined
      const done = await start(event => {
        last = event
      })
      assert.deepEqual(done, { complete: true, questions: 703, deadletters: 3 })
      assert.deepEqual(await keys(log, 'questions'), QUESTIONS)
      assert.deepEqual(await keys(log, 'deadletters'), FAILURES)
      assert.equal(await sealed(log), true)
      assert.deepEqual(last, {
        kind: 'stage',
        stage: 'ingest',
        seen: 706,
        written: 703,
        deadletters: 3,
        total: 706,
      })
      assert.equal(warnings.length, 3)
      assert.deepEqual(await start(), done, 'once more adds nothing')
      assert.equal((await keys(log, 'questions')).length, 703)
    }))

  test('of two that ingest at once, one is stopped, and nothing is written twice', () =>
    withLog([], async (log, start) => {
      const both = await Promise.allSettled([start(), start()])
      const stopped = both.filter(result => result.status === 'rejected')
      assert.deepEqual(
        stopped.map(({ reason }) => reason.code),
        ['LOG_UNAVAILABLE'],
      )
      assert.match(stopped[0]!.reason.message, /another process writes to questions/)
      assert.deepEqual(await start(), { complete: true, questions: 703, deadletters: 3 })
      assert.deepEqual(await keys(log, 'questions'), QUESTIONS)
    }))

  test('what was interrupted goes on, and nothing is written twice', () =>
    withLog([], async (log, start) => {
      for (const stopAt of [300, 650]) {
        const controller = new AbortController()
        const { complete } = await start(event => {
          if (event.kind === 'stage' && event.seen === stopAt) controller.abort()
        }, controller.signal)
        assert.equal(complete, false)
        assert.equal(
          (await keys(log, 'questions')).length,
          stopAt - 1,
          'one of the first items is a dead letter',
        )
        assert.equal(await sealed(log), false)
      }
      assert.deepEqual(await start(), { complete: true, questions: 703, deadletters: 3 })
      assert.deepEqual(await keys(log, 'questions'), QUESTIONS)
      assert.deepEqual(await keys(log, 'deadletters'), FAILURES)
    }))

  test('data.limit takes the first items of a split', () =>
    withLog(['data.limit.train=3', 'data.limit.test=1'], async (log, start) => {
      await start()
      assert.deepEqual(await keys(log, 'questions'), ['a', 't0', 'h0'])
    }))

  test('a file that is cut off stops everything before anything is written', () =>
    withLog([`data.test=${join(folder, 'cut.json')}`], async (log, start) => {
      writeFileSync(join(folder, 'cut.json'), JSON.stringify([tinyItem('h0')]).slice(0, -9))
      await assert.rejects(start(), { code: 'DATA_INVALID', message: /cut\.json: is cut off/ })
      assert.deepEqual(await keys(log, 'questions'), [])
    }))

  test('of many bad items the first few are told, all are in the dead letters', () =>
    withLog([`data.train=${join(folder, 'poor.json')}`], async (log, start) => {
      write('poor.json', [
        ...Array.from({ length: 9 }, (_, i) => tinyItem(`p${i}`, { category: 3 })),
        tinyItem('good'),
      ])
      await start()
      assert.equal((await keys(log, 'deadletters')).length, 9)
      assert.equal(warnings.length, 6)
      assert.match(
        warnings[0] ?? '',
        /poor\.json: item 1 .*category is 3 \(a number\); expected a text; it is left out/,
      )
      assert.match(warnings[5] ?? '', /more items are left out; `grasp deadletters list` shows all/)
    }))
})
