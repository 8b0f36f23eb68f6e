/**
 * The log against bare LMDB: records and megabytes a second of append, read, and read → commit (each record
 * is read, written again and its position advanced, in one transaction a batch), for small and large records.
 *
 * Two peers, both through the same lmdb package, with transactions of the same size, and durable in the same
 * way (a commit counts once it is synced to disk):
 *   objects   the same records by the package's own encoder (msgpack): what one would write without a log
 *   bytes     records that are encoded already: the floor
 *
 *     node --import tsx bench/log.ts [--json] [--rounds N] [--load NAME]
 */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { open } from 'lmdb'
import { lastValueFrom, map } from 'rxjs'
import { createCodec } from '../bus/codec.ts'
import { openFlow } from '../bus/flow.ts'
import { openLmdbLog } from '../bus/lmdb/log.ts'
import { type LogRecord, type Output, output } from '../bus/port.ts'

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
type Times = Record<Name, Record<Work, number>>

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

async function seconds(work: () => Promise<unknown>): Promise<number> {
  const start = performance.now()
  await work()
  return (performance.now() - start) / 1000
}

function outputsOf({ bytes, records }: Load): Output[] {
  const payload = new Uint8Array(bytes).map((_, i) => i)
  return Array.from({ length: records }, (_, i) => {
    const place = { stage: 'bench', topic: 'slices', partition: 0, offset: i, key: `key ${i}` }
    return output('deadletters', place.key, { ...place, code: 'X', message: '', attempts: 1, payload })
  })
}

/** Everything anew, the contenders in turn at every step, so that a slow moment of the machine hits all. */
async function round(load: Load, outputs: readonly Output[]): Promise<Times> {
  const path = mkdtempSync(join(tmpdir(), 'grasp-bench-'))
  const codec = createCodec()
  const contenders: Record<Name, Contender> = {
    log: await openLog(path, load),
    objects: await openBare(join(path, 'objects'), load, 'msgpack', ({ value }) => value),
    bytes: await openBare(join(path, 'bytes'), load, 'binary', ({ topic, value }) =>
      codec.encode(topic, value),
    ),
  }
  const zero = () => ({ append: 0, read: 0, 'read → commit': 0 })
  const times: Times = { log: zero(), objects: zero(), bytes: zero() }
  try {
    for (let i = 0; i < outputs.length; i += load.batch) {
      const batch = outputs.slice(i, i + load.batch)
      for (const name of CONTENDERS) times[name].append += await seconds(() => contenders[name].append(batch))
    }
    const reads: Record<Name, number[]> = { log: [], objects: [], bytes: [] }
    for (let i = 0; i < READS; i++) {
      for (const name of CONTENDERS) {
        const time = await seconds(async () => {
          const count = await contenders[name].read()
          if (count !== outputs.length) throw new Error(`${name} read ${count} of ${outputs.length} records`)
        })
        reads[name].push(time)
      }
    }
    for (const name of CONTENDERS) times[name].read = median(reads[name])
    for (const name of CONTENDERS) times[name]['read → commit'] = await seconds(() => contenders[name].loop())
  } finally {
    for (const name of CONTENDERS) await contenders[name].close()
    rmSync(path, { recursive: true })
  }
  return times
}

function median(values: readonly number[]): number {
  return [...values].sort((a, b) => a - b)[values.length >> 1]!
}

interface Row {
  readonly record: string
  readonly work: Work
  readonly recordsPerSecond: number
  readonly megabytesPerSecond: number
  /** Speed of the log over that of the peer. */
  readonly ratioToObjects: number
  readonly ratioToBytes: number
}

async function measure(load: Load, rounds: number): Promise<Row[]> {
  const outputs = outputsOf(load)
  const times: Times[] = []
  for (let i = 0; i <= rounds; i++) times.push(await round(load, outputs))
  // The first one warms up.
  times.shift()
  return WORKS.map(work => {
    const recordsPerSecond = load.records / median(times.map(({ log }) => log[work]))
    const ratio = (peer: 'objects' | 'bytes') => median(times.map(each => each[peer][work] / each.log[work]))
    return {
      record: load.name,
      work,
      recordsPerSecond,
      megabytesPerSecond: (recordsPerSecond * load.bytes) / 1e6,
      ratioToObjects: ratio('objects'),
      ratioToBytes: ratio('bytes'),
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
if (flags.json) console.log(JSON.stringify(rows))
else {
  console.log('record  work             rec/s     MB/s  of bare LMDB: objects  bytes')
  for (const { record, work, recordsPerSecond, megabytesPerSecond, ratioToObjects, ratioToBytes } of rows) {
    const speed = `${recordsPerSecond.toFixed(0).padStart(8)} ${megabytesPerSecond.toFixed(0).padStart(8)}`
    const ratios = `${ratioToObjects.toFixed(2).padStart(22)} ${ratioToBytes.toFixed(2).padStart(6)}`
    console.log(`${record.padEnd(6)}  ${work.padEnd(13)} ${speed} ${ratios}`)
  }
}
