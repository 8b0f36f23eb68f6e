/**
 * Appends and commits without end, and prints what was acknowledged, for a test that kills it:
 * `busy-child.ts PATH RUN`. Lines: `append PARTITION OFFSET ID`, `commit POSITION`.
 */
import { writeSync } from 'node:fs'
import { map } from 'rxjs'
import { openFlow } from '../../../bus/flow.ts'
import { openLmdbLog } from '../../../bus/lmdb/log.ts'
import { output } from '../../../bus/port.ts'
import { questionOutput } from '../samples.ts'

const [path, run] = process.argv.slice(2)
const log = await openLmdbLog({ path: path!, run: run! })

const flow = openFlow(log, 'questions', {
  stage: 'busy',
  group: 'busy',
  credits: { records: 16, bytes: 1 << 20 },
  until: 'never',
})
const copy = map((record: { offset: number; value: { id: string } }) => ({
  consumed: [record as never],
  outputs: [
    output('policies', 'k', {
      version: record.offset,
      path: record.value.id,
      weightsHash: '',
      tokenizer: '',
      score: null,
      best: false,
    }),
  ],
}))
flow.records$.pipe(copy, flow.commit()).subscribe(({ positions }) => {
  for (const { offset } of positions) writeSync(1, `commit ${offset}\n`)
})

for (let i = 0; ; i++) {
  const ids = Array.from({ length: 1 + (i % 7) }, (_, j) => `${process.pid}-${i}-${j}`)
  const places = await log.append(ids.map(id => questionOutput(id, 'k')))
  for (const [j, { partition, offset }] of places.entries())
    writeSync(1, `append ${partition} ${offset} ${ids[j]}\n`)
}
