/**
 * Writes to a log: `write-child.ts PATH RUN KIND COUNT BYTES`, KIND being
 *   append   COUNT appends of a record of BYTES, then a small one; prints each offset, or the error
 *   seal     the same, then seals the topic
 *   commit   commits group g up to offset COUNT
 */
import { openLmdbLog } from '../../../bus/lmdb/log.ts'
import type { GraspError } from '../../../errors/grasp-error.ts'
import { letterOutput } from '../samples.ts'

const [path, run, kind, count, bytes] = process.argv.slice(2)
const log = await openLmdbLog({ path: path!, run: run! })
const append = async (size: number) => {
  try {
    const [place] = await log.append([letterOutput(`${process.pid}`, size)])
    console.log(place!.offset)
  } catch (error) {
    const { code, message } = error as GraspError
    console.log(code, message)
  }
}
if (kind === 'commit') {
  const position = { topic: 'deadletters' as const, partition: 0, offset: Number(count) }
  await log.commit({ group: 'g', outputs: [], positions: [position] })
} else {
  for (let i = 0; i < Number(count); i++) await append(Number(bytes))
  if (kind === 'append') await append(10)
  if (kind === 'seal') await log.seal(['deadletters'])
}
await log.close()
