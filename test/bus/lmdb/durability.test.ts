/** kill -9 at any time: what was acknowledged is there, and outputs and positions agree. */
import assert from 'node:assert/strict'
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { afterEach, beforeEach, describe, it } from 'node:test'
import { fileURLToPath } from 'node:url'
import { openLmdbLog } from '../../../bus/lmdb/log.ts'
import type { Log } from '../../../bus/port.ts'
import { gather, questionOutput } from '../samples.ts'
import { RUN, temporaryFolder } from './harness.ts'

const busyChild = fileURLToPath(new URL('./busy-child.ts', import.meta.url))

interface Acknowledged {
  /** Offset → id. */
  readonly appended: Map<number, string>
  committed: number
}

/** Runs the child until it has acknowledged `lines` more lines, and kills it. */
async function killAfter(path: string, lines: number, acknowledged: Acknowledged): Promise<void> {
  const child: ChildProcess = spawn(process.execPath, ['--import', 'tsx', busyChild, path, RUN], {
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  const closed = once(child, 'close')
  let text = ''
  let killed = false
  child.stdout!.setEncoding('utf8').on('data', (chunk: string) => {
    text += chunk
    if (killed || text.split('\n').length <= lines) return
    killed = true
    child.kill('SIGKILL')
  })
  const [, signal] = await closed
  assert.equal(signal, 'SIGKILL', 'the child runs until it is killed')
  // The last line may be cut.
  for (const line of text.split('\n').slice(0, -1)) {
    const [what, first, second, id] = line.split(' ')
    if (what === 'append') acknowledged.appended.set(Number(second), id!)
    else acknowledged.committed = Math.max(acknowledged.committed, Number(first))
  }
}

async function check(log: Log, { appended, committed }: Acknowledged): Promise<void> {
  const records = await gather(log.scan('questions'))
  assert.deepEqual(
    records.map(record => record.offset),
    [...records.keys()],
    'offsets have no gaps',
  )
  for (const [offset, id] of appended) assert.equal(records[offset]?.value?.id, id, `offset ${offset}`)
  const [position] = await log.committed('questions', 'busy')
  assert.ok(position! >= committed, `position ${position} is behind the acknowledged ${committed}`)
  const outputs = (await gather(log.scan('policies'))).map(record => record.value!.path)
  const inputs = records.slice(0, position).map(record => record.value!.id)
  assert.deepEqual(outputs, inputs, 'each consumed record has its output once, in order')
}

describe('a log whose process is killed', () => {
  let folder: Awaited<ReturnType<typeof temporaryFolder>>
  beforeEach(async () => {
    folder = await temporaryFolder()
  })
  afterEach(() => folder.remove())

  it('has everything that was acknowledged, however often', async () => {
    const acknowledged: Acknowledged = { appended: new Map(), committed: 0 }
    for (const lines of [1, 40, 7, 300, 113]) {
      await killAfter(folder.path, lines, acknowledged)
      const log = await openLmdbLog({ path: folder.path, run: RUN })
      await check(log, acknowledged)
      await log.close()
    }
    assert.ok(acknowledged.appended.size > 200)
    assert.ok(acknowledged.committed > 50)
  })

  it('goes on serving the processes that live', async () => {
    const acknowledged: Acknowledged = { appended: new Map(), committed: 0 }
    const log = await openLmdbLog({ path: folder.path, run: RUN })
    try {
      for (const lines of [50, 120]) {
        await killAfter(folder.path, lines, acknowledged)
        const [place] = await log.append([questionOutput('survivor', 'k')])
        acknowledged.appended.set(place!.offset, 'survivor')
        await check(log, acknowledged)
      }
    } finally {
      await log.close()
    }
  })
})
