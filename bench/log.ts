/**
 * The log against bare LMDB: records and megabytes a second of append, read, and read → commit (each record
 * is read, written again and its position advanced, in one transaction a batch), for small and large records.
 *
 * Two peers, both through the same lmdb package, with transactions of the same size, and durable in the same
 * way (a commit counts once it is synced to disk):
 *   objects   the same records by the package's own encoder (msgpack): what one would write without a log
 *   bytes     records that are encoded already: the floor
 *
 * Beside wall time it gives processor time, of all threads, which says more on a busy machine. Progress goes to
 * standard error.
 *
 *     node --import tsx bench/log.ts [--json] [--rounds N] [--load NAME]
 */
import { mkdtempSync, rmSync } from 'node:fs'
import { availableParallelism, loadavg, tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { open } from 'lmdb'
import { lastValueFrom, map } from 'rxjs'
import { createCodec } from '../bus/codec.ts'
import { openFlow } from '../bus/flow.ts'
import { openLmdbLog } from '../bus/lmdb/log.ts'
import { type LogRecord, type Output, output } from '../bus/port.ts'
import { median, type Sample, speedRatio, startClock } from './rounds.ts'

interface Load {
  readonly name: string
  /** Size of a record's payload field. */
  readonly bytes: number
  readonly records: number
  /** Records in one transaction. */
  readonly batch: number
}

const LOADS: readonly Load[] = [
  { name: '1 KB', bytes: 1000, records: 20_000, batch: 200 },
  { name: '1 MiB', bytes: 1 << 20, records: 128, batch: 8 },
]

/** One of the three, on a folder of its own. */
interface Contender {
  append(batch: readonly Output[]): Promise<void>
  /** Reads and decodes everything that was appended; gives the count. */
  read(): Promise<number>
  /** Reads every record and commits it, written again, together with the position. */
  loop(): Promise<void>
  close(): Promise<void>
}

/** Reading is quick, so it is repeated, also until it is compiled. */
const READS = 15

const CONTENDERS = ['log', 'objects', 'bytes'] as const
const WORKS = ['append', 'read', 'read → commit'] as const
type Name = (typeof CONTENDERS)[number]
type Work = (typeof WORKS)[number]
type Samples = Record<Name, Record<Work, Sample>>

async function openLog(path: string, { batch, bytes }: Load): Promise<Contender> {
  const log = await openLmdbLog({ path, run: 'bench' })
  const again = map((record: LogRecord<'deadletters'>) => ({
    consumed: [record],
    outputs: [output('deadletters', record.key, record.value)],
  }))
  return {
    append: async outputs => void (await log.append(outputs)),
    async read() {
      let count = 0
      const credits = { records: Number.POSITIVE_INFINITY, bytes: Number.POSITIVE_INFINITY }
      await log.read('deadletters', { group: 'read', credits, until: 'end' }).forEach(({ value }) => {
        if (value) count++
      })
      return count
    },
    async loop() {
      const credits = { records: batch * 2, bytes: batch * 2 * (bytes + 100) }
      const flow = openFlow(log, 'deadletters', { stage: 'bench', group: 'loop', credits, until: 'end' })
      await lastValueFrom(flow.records$.pipe(again, flow.commit()))
    },
    close: () => log.close(),
  }
}

/** `encode` and `decode` are the difference between the two peers. */
async function openBare<T>(
  path: string,
  { batch }: Load,
  encoding: 'msgpack' | 'binary',
  encode: (record: Output) => T,
): Promise<Contender> {
  const root = open({ path, noSubdir: false, overlappingSync: false })
  const records = root.openDB<T, number>({ name: 'records', encoding })
  const positions = root.openDB<number, string>({ name: 'positions', encoding: 'json' })
  let end = 0
  const put = (value: T) => records.putSync(end++, value, { append: true })
  return {
    append: outputs =>
      root.transaction(() => {
        for (const each of outputs) put(encode(each))
      }),
    async read() {
      let count = 0
      for (let i = 0; i < end; i++) if (records.get(i)) count++
      return count
    },
    async loop() {
      const stop = end
      for (let i = 0; i < stop; i += batch) {
        await root.transaction(() => {
          const next = Math.min(stop, i + batch)
          for (let j = i; j < next; j++) put(records.get(j)!)
          positions.putSync('loop', next)
        })
      }
    },
    close: () => root.close(),
  }
}

async function measured(work: () => Promise<unknown>): Promise<Sample> {
  const clock = startClock()
  await work()
  return clock()
}

function outputsOf({ bytes, records }: Load): Output[] {
  const payload = new Uint8Array(bytes).map((_, i) => i)
  return Array.from({ length: records }, (_, i) => {
    const place = { stage: 'bench', topic: 'slices', partition: 0, offset: i, key: `key ${i}` }
    return output('deadletters', place.key, { ...place, code: 'X', message: '', attempts: 1, payload })
  })
}

/** Everything anew, the contenders in turn at every step, so that a slow moment of the machine hits all. */
async function round(load: Load, outputs: readonly Output[]): Promise<Samples> {
  const path = mkdtempSync(join(tmpdir(), 'grasp-bench-'))
  const codec = createCodec()
  const contenders: Record<Name, Contender> = {
    log: await openLog(path, load),
    objects: await openBare(join(path, 'objects'), load, 'msgpack', ({ value }) => value),
    bytes: await openBare(join(path, 'bytes'), load, 'binary', ({ topic, value }) =>
      codec.encode(topic, value),
    ),
  }
  const taken = (): Record<Work, Sample[]> => ({ append: [], read: [], 'read → commit': [] })
  const parts: Record<Name, Record<Work, Sample[]>> = { log: taken(), objects: taken(), bytes: taken() }
  try {
    for (let i = 0; i < outputs.length; i += load.batch) {
      const batch = outputs.slice(i, i + load.batch)
      for (const name of CONTENDERS)
        parts[name].append.push(await measured(() => contenders[name].append(batch)))
    }
    for (let i = 0; i < READS; i++) {
      for (const name of CONTENDERS) {
        const read = async () => {
          const count = await contenders[name].read()
          if (count !== outputs.length) throw new Error(`${name} read ${count} of ${outputs.length} records`)
        }
        parts[name].read.push(await measured(read))
      }
    }
    for (const name of CONTENDERS)
      parts[name]['read → commit'].push(await measured(() => contenders[name].loop()))
  } finally {
    for (const name of CONTENDERS) await contenders[name].close()
    rmSync(path, { recursive: true })
  }
  const samplesOf = (name: Name): Record<Work, Sample> => ({
    append: combined(parts[name].append, values => values.reduce((sum, value) => sum + value, 0)),
    read: combined(parts[name].read, median),
    'read → commit': parts[name]['read → commit'][0]!,
  })
  return { log: samplesOf('log'), objects: samplesOf('objects'), bytes: samplesOf('bytes') }
}

function combined(samples: readonly Sample[], how: (values: readonly number[]) => number): Sample {
  return {
    seconds: how(samples.map(({ seconds }) => seconds)),
    processorSeconds: how(samples.map(({ processorSeconds }) => processorSeconds)),
  }
}

interface Row {
  readonly record: string
  readonly work: Work
  readonly recordsPerSecond: number
  readonly megabytesPerSecond: number
  /** Speed of the log over that of the peer: median over the rounds. */
  readonly ratio: Record<'objects' | 'bytes', number>
  readonly processorRatio: Record<'objects' | 'bytes', number>
}

async function measure(load: Load, rounds: number): Promise<Row[]> {
  const outputs = outputsOf(load)
  const samples: Samples[] = []
  for (let i = 0; i <= rounds; i++) {
    process.stderr.write(`${load.name}: ${i === 0 ? 'warming up' : `round ${i} of ${rounds}`}\n`)
    samples.push(await round(load, outputs))
  }
  // The first one warms up.
  samples.shift()
  return WORKS.map(work => {
    const of = (name: Name) => samples.map(each => each[name][work])
    const recordsPerSecond = load.records / median(of('log').map(({ seconds }) => seconds))
    const ratios = (kind: keyof Sample) => ({
      objects: speedRatio(of('log'), of('objects'), kind),
      bytes: speedRatio(of('log'), of('bytes'), kind),
    })
    return {
      record: load.name,
      work,
      recordsPerSecond,
      megabytesPerSecond: (recordsPerSecond * load.bytes) / 1e6,
      ratio: ratios('seconds'),
      processorRatio: ratios('processorSeconds'),
    }
  })
}

const { values: flags } = parseArgs({
  options: {
    json: { type: 'boolean', default: false },
    rounds: { type: 'string', default: '5' },
    load: { type: 'string', default: '' },
  },
})
const rows: Row[] = []
for (const load of LOADS) {
  if (load.name.startsWith(flags.load)) rows.push(...(await measure(load, Number(flags.rounds))))
}
const machine = { cores: availableParallelism(), load: loadavg().map(each => Number(each.toFixed(1))) }
if (flags.json) console.log(JSON.stringify({ machine, rows }))
else {
  console.log(`${machine.cores} cores, load ${machine.load.join(', ')}`)
  console.log('record  work             rec/s     MB/s  of bare LMDB: objects    cpu   bytes    cpu')
  for (const { record, work, recordsPerSecond, megabytesPerSecond, ratio, processorRatio } of rows) {
    const speed = `${recordsPerSecond.toFixed(0).padStart(8)} ${megabytesPerSecond.toFixed(0).padStart(8)}`
    const ratios = [ratio.objects, processorRatio.objects, ratio.bytes, processorRatio.bytes]
    const cells = ratios.map((each, i) => each.toFixed(2).padStart(i === 0 ? 22 : 7))
    console.log(`${record.padEnd(6)}  ${work.padEnd(13)} ${speed} ${cells.join('')}`)
  }
}
