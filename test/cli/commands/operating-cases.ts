/** The commands for operating a run, over whichever log the settings choose. */
import assert from 'node:assert/strict'
import { join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import { deadLetter } from '../../../bus/dead-letter.ts'
import type { Envelope, Log } from '../../../bus/port.ts'
import { GraspError } from '../../../errors/grasp-error.ts'
import { loadConfig } from '../../../pipelines/config/load.ts'
import { countRecords } from '../../../pipelines/operate/records.ts'
import { openRunLog } from '../../../pipelines/run-log.ts'
import { gather } from '../../bus/samples.ts'
import { context } from '../../pipelines/operate/samples.ts'
import { CONFIG, item, Workspace } from '../grasp.ts'
import { graspHere } from '../in-process.ts'

export interface OperatingOptions {
  /** `key=value` for `--set`: which log, and where. */
  readonly settings: readonly string[]
}

interface Lag {
  readonly stage: string
  readonly lag: number | null
  readonly end: number
  readonly committed: number
  readonly state: string
  readonly workers: readonly string[]
}

export function describeOperating(name: string, { settings }: OperatingOptions): void {
  describe(`${name}: operating a run`, () => {
    let workspace: Workspace
    const set = settings.flatMap(setting => ['--set', setting])
    const grasp = (...args: string[]) => graspHere([...args, ...set], { cwd: workspace.path })
    /** A command that goes on until it is stopped, or stops by itself. */
    const watched = (args: string[], watch: (text: string) => void) =>
      graspHere([...args, ...set], { cwd: workspace.path, watch })
    const json = async (...args: string[]) => {
      const { code, stdout, stderr } = await grasp(...args, '--json')
      assert.equal(code, 0, stderr)
      return JSON.parse(stdout)
    }
    /** What a stage would do to the log, without its model. */
    const withLog = async <T>(work: (log: Log) => Promise<T>): Promise<T> => {
      const config = await loadConfig({ file: join(workspace.path, 'grasp.yaml'), set: [...settings] })
      // The places in the configuration are relative to the folder that the command runs in.
      const path = join(workspace.path, '.grasp', 'logs')
      const log = await openRunLog({ ...config, log: { ...config.log, path } })
      try {
        return await work(log)
      } finally {
        await log.close()
      }
    }
    const lagOf = async (stage: string): Promise<Lag> =>
      (await json('lag', '--exact')).stages.find((lag: Lag) => lag.stage === stage)

    before(async () => {
      workspace = new Workspace()
      workspace.write('grasp.yaml', CONFIG)
      workspace.write('train.json', [
        item('a'),
        item('b', { category: 'Society' }),
        item('c'),
        item('bad', { profile: [] }),
      ])
    })
    after(() => workspace[Symbol.dispose]())

    test('before there is a log, looking and changing fail and make nothing; create makes it', async () => {
      const looks = [['lag'], ['reset', '--stage', 'retrieval', '--to', 'end', '--yes']]
      for (const args of looks) {
        const { code, stderr } = await grasp(...args)
        assert.equal(code, 1, args.join(' '))
        assert.match(stderr, /^error LOG_UNAVAILABLE: there is no /m)
      }
      const { created, topics } = await json('topics', 'create')
      assert.equal(created, topics.length)
      const again = await grasp('topics', 'create')
      assert.match(again.stdout, /^questions +1 +was there$/m)
    })

    test('topics count and tail choose by field, key and limit', async () => {
      assert.equal((await grasp('ingest')).code, 0)
      assert.equal((await grasp('topics', 'count', 'questions', '--where', 'category=Society')).stdout, '1\n')
      const { counts } = await json('topics', 'count')
      assert.deepEqual(
        counts.filter(({ records }: { records: number }) => records > 0),
        [
          { topic: 'questions', records: 3 },
          { topic: 'deadletters', records: 1 },
        ],
      )
      const keys = async (...args: string[]) =>
        (await grasp('topics', 'tail', 'questions', ...args)).stdout
          .split('\n')
          .filter(line => line !== '')
          .map(line => (JSON.parse(line) as { key: string }).key)
      assert.deepEqual(await keys('--where', 'profile.id=p', '--where', 'id!=b'), ['a', 'c'])
      assert.deepEqual(await keys('--offset', '0', '--limit', '2', '--json'), ['a', 'b'])
      const absent = await grasp('topics', 'tail', 'questions', '--partition', '9', '--json')
      assert.deepEqual(Object.keys(JSON.parse(absent.stdout)), ['error'])
      const wrong = await grasp('topics', 'tail', 'questions', '--where', 'profile.txt=x')
      assert.equal(wrong.code, 2)
      assert.match(wrong.stderr, /no field 'txt' in profile of questions; did you mean text\?/)
    })

    test('tail --follow prints what comes, once, until the limit', async () => {
      const args = ['topics', 'tail', 'contexts', '--follow', '--where', 'split=test', '--limit', '2']
      const ids: string[] = []
      const followed = watched(args, line => ids.push(JSON.parse(line).value.id))
      await withLog(async log => {
        for (const [id, split] of [
          ['t1', 'test'],
          ['x', 'train'],
          ['t2', 'test'],
        ] as const)
          await log.append([context(id, split)])
      })
      assert.equal((await followed).code, 0)
      assert.deepEqual(ids, ['t1', 't2'])
    })

    test('lag: every stage, in JSON, as a table, and again and again in plain lines', async () => {
      const lag = await lagOf('retrieval')
      assert.deepEqual([lag.lag, lag.state], [3, 'not running'])
      const { stdout } = await grasp('lag')
      assert.match(stdout, /^retrieval +questions +\d+ +0 +(3|≤ \d+) +\d+ \w+ +not running$/m)
      assert.match(stdout, /^evaluation +contexts +– +– +– +– +keeps no position$/m)

      const lines: string[] = []
      const { code } = await watched(['lag', '--watch', '0.1'], line => {
        lines.push(line)
        if (lines.length === 3) process.emit('SIGINT')
      })
      assert.equal(code, 0)
      assert.equal(lines.length, 3)
      for (const line of lines)
        assert.match(line, /^\d{4}-\S+Z retrieval (3|≤ \d+) \(\d+ \w+\), validation .*\n$/)
    })

    test('reset shows, asks, and sets', async () => {
      const reset = (...args: string[]) => grasp('reset', '--stage', 'retrieval', ...args)
      const dry = await reset('--to', 'end', '--dry-run')
      assert.equal(dry.code, 0)
      assert.match(dry.stdout, /^3 records of questions would never be processed by retrieval\.$/m)
      assert.match(dry.stdout, /^Nothing was changed\.$/m)
      const unasked = await reset('--to', 'end')
      assert.equal(unasked.code, 2)
      assert.match(unasked.stderr, /^error CONFIG_INVALID: there is no terminal to ask on; give --yes/m)
      const done = await reset('--to', 'end', '--yes')
      assert.match(done.stdout, /^retrieval is set; `grasp run` goes on from there$/m)
      const back = await json('reset', '--stage', 'retrieval', '--to', '1', '--yes')
      assert.deepEqual([back.applied, back.again, back.stage], [true, 2, 'retrieval'])
      assert.deepEqual(back.stages.slice(0, 2), ['retrieval', 'validation'])
      assert.equal((await lagOf('retrieval')).lag, 2)
      const training = await grasp('reset', '--stage', 'training', '--to', 'end')
      assert.equal(training.code, 2)
      assert.match(training.stderr, /training's position is in its checkpoint/)
    })

    test('reset is refused while something works as the stage, and lag shows it', async () => {
      await withLog(async log => {
        const credits = { records: 1, bytes: 1 }
        const reading = log.read('questions', { group: 'retrieval', credits, until: 'never' }).subscribe()
        try {
          for (const how of ['--yes', '--dry-run']) {
            const { code, stderr } = await grasp('reset', '--stage', 'retrieval', '--to', 'beginning', how)
            assert.equal(code, 1)
            assert.match(stderr, /^error GROUP_ACTIVE: retrieval is at work \(.+\); stop the run first/m)
          }
          const lag = await lagOf('retrieval')
          assert.deepEqual([lag.state, lag.workers.length], ['working', 1])
        } finally {
          reading.unsubscribe()
        }
      })
    })

    test('deadletters: listed, shown, replayed once', async () => {
      await withLog(async log => {
        const records = await gather(log.scan('contexts'))
        const failed = records.find(({ key }) => key === 'x') as Envelope
        const error = new GraspError('PROMPT_TOO_LONG', 'a prompt that is too long')
        await log.append([deadLetter(failed, { stage: 'validation', error })])
      })
      const { deadletters } = await json('deadletters', 'list', '--stage', 'validation')
      assert.equal(deadletters.length, 1)
      const { id, source, code, replayed } = deadletters[0]
      assert.deepEqual([source.topic, source.key, code, replayed], ['contexts', 'x', 'PROMPT_TOO_LONG', null])
      const listed = await grasp('deadletters', 'list')
      assert.match(
        listed.stdout,
        /^deadletters\/0\/\d+ .* ingest +RECORD_INVALID +file item train:4 +no +train\.json/m,
      )
      const shown = await json('deadletters', 'show', id)
      assert.equal(shown.record.id, 'x')
      assert.deepEqual(shown.replay, { topic: 'contexts' })
      const count = () => withLog(log => countRecords(log, { topic: 'contexts', key: 'x' }))
      assert.equal(await count(), 1)
      const done = await grasp('deadletters', 'replay', id)
      assert.equal(done.stdout, '1 dead letter replayed\n')
      assert.equal(await count(), 2)
      const again = await grasp('deadletters', 'replay', id)
      assert.equal(again.code, 1)
      assert.match(again.stdout, /replayed before, to contexts\/0\/\d+ \(--again overrides\)/)
      assert.equal(await count(), 2)
    })

    test('an item of a file is replayed when it was put right; the complete run is open again', async () => {
      const text = await grasp('deadletters', 'show', '0')
      assert.match(text.stdout, /^replaying +is refused: the item is still wrong: profile is an empty list/m)
      workspace.write('right.json', item('bad'))
      const { applied, replays, reopens } = await json('deadletters', 'replay', '0', '--item', 'right.json')
      assert.deepEqual([applied, replays[0].to.topic, replays[0].key], [true, 'questions', 'bad'])
      assert.deepEqual(reopens, ['questions'])
      // Reading the data files again closes the topic, and takes nothing twice.
      assert.equal((await grasp('ingest')).code, 0)
      const { topics } = await json('topics', 'list')
      const questions = topics.find(({ topic }: { topic: string }) => topic === 'questions')
      assert.equal(questions.sealed, true)
      assert.equal(await withLog(log => countRecords(log, { topic: 'questions' })), 4)
    })

    test('replaying needs to be told what, and asks where it is many', async () => {
      const cases: [string[], RegExp][] = [
        [[], /name dead letters by their ids, or choose them/],
        [['--all', '--again'], /there is no terminal to ask on/],
        [['99'], /there is no dead letter deadletters\/0\/99/],
      ]
      for (const [args, message] of cases) {
        const { code, stderr } = await grasp('deadletters', 'replay', ...args)
        assert.match(stderr, message)
        assert.equal(code, 2)
      }
    })
  })
}
