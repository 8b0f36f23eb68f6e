/** The stage's loop against kafkajs alone, in turn on the same topics of the same broker. */

import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import type { Log, Output } from '../../bus/port.ts'
import { alternate, median, type Sample, speedRatio } from '../rounds.ts'
import { bareLoop } from './bare-loop.ts'
import { withRun } from './cluster.ts'
import type { Load } from './loads.ts'
import { stageLoop } from './stage-loop.ts'

export interface LoopResult {
  readonly record: string
  readonly rounds: number
  /** Median of the rounds. */
  readonly recordsPerSecond: {
    readonly stage: number
    readonly transactional: number
    readonly plain: number
  }
  /** Speed of the stage over that of kafkajs: median over the rounds. */
  readonly ratio: { readonly transactional: number; readonly plain: number }
  /** The same of processor time, this process's. */
  readonly processorRatio: { readonly transactional: number; readonly plain: number }
  /** After each round of the stage and a garbage collection: MiB that are still held. */
  readonly held: readonly number[]
  /** MiB, resident, at the same moments. */
  readonly resident: readonly number[]
}

export async function measureLoops(
  brokers: readonly string[],
  load: Load,
  rounds: number,
  say: (line: string) => void,
): Promise<LoopResult> {
  return withRun(brokers, [load.from, load.to], async run => {
    say(`${load.name}: writing ${load.records} records`)
    await fill(run.log, load)
    const held: number[] = []
    const resident: number[] = []
    let groups = 0
    const limits = { most: rounds, seconds: 45, least: Math.min(3, rounds) }
    const contenders = {
      stage: async () => {
        const sample = await stageLoop(run, load)
        await collectGarbage()
        const { rss, heapUsed, external } = process.memoryUsage()
        held.push(Math.round((heapUsed + external) / 2 ** 20))
        resident.push(Math.round(rss / 2 ** 20))
        return sample
      },
      transactional: () => bareLoop(run, load, { transactional: true, group: `bare-${groups++}` }),
      plain: () => bareLoop(run, load, { transactional: false, group: `bare-${groups++}` }),
    }
    const samples = await alternate(contenders, limits, (round, name, { seconds }) => {
      const speed = `${Math.round(load.records / seconds)} records/s`
      say(`${load.name}: ${round === 0 ? 'warming up' : `round ${round} of ${rounds}`}, ${name}: ${speed}`)
    })
    const speed = (of: readonly Sample[]) => load.records / median(of.map(({ seconds }) => seconds))
    const ratios = (of: keyof Sample) => ({
      transactional: speedRatio(samples.stage, samples.transactional, of),
      plain: speedRatio(samples.stage, samples.plain, of),
    })
    return {
      record: load.name,
      rounds: samples.stage.length,
      recordsPerSecond: {
        stage: speed(samples.stage),
        transactional: speed(samples.transactional),
        plain: speed(samples.plain),
      },
      ratio: ratios('seconds'),
      processorRatio: ratios('processorSeconds'),
      held,
      resident,
    }
  })
}

/** As a stage with the same credits writes them: each with its origin, in transactions of half of what is in flight. */
async function fill(log: Log, { from, records, inFlight, make }: Load): Promise<void> {
  const step = Math.max(1, inFlight >> 1)
  for (let i = 0; i < records; i += step) {
    const indices = Array.from({ length: Math.min(step, records - i) }, (_, j) => i + j)
    const outputs: Output[] = indices.map(make)
    const origins = indices.map(offset => ({ topic: from, partition: 0, offset, index: 0 }))
    await log.commit({ group: 'fill', outputs, origins, positions: [] })
  }
}

/** Twice, since what holds memory outside of the heap is only let go of afterwards. */
async function collectGarbage(): Promise<void> {
  setFlagsFromString('--expose-gc')
  const collect = runInNewContext('gc') as () => void
  for (let i = 0; i < 2; i++) {
    collect()
    await new Promise(resolve => setImmediate(resolve))
  }
}
