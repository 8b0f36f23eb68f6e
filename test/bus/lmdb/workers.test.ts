import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, it } from 'node:test'
import { fileURLToPath } from 'node:url'
import { openLmdbLog } from '../../../bus/lmdb/log.ts'
import { processStart } from '../../../bus/lmdb/process-start.ts'
import { Workers } from '../../../bus/lmdb/workers.ts'
import { RUN, temporaryFolder } from './harness.ts'

const busy = fileURLToPath(new URL('./busy-child.ts', import.meta.url))

describe('who reads as a group', () => {
  let folder: Awaited<ReturnType<typeof temporaryFolder>>
  let workers: Workers
  beforeEach(async () => {
    folder = await temporaryFolder()
    workers = new Workers(folder.path)
  })
  afterEach(() => folder.remove())

  /** Rewrites the file of the one worker. */
  const change = (changes: object) => {
    const path = join(folder.path, 'workers')
    const file = join(path, readdirSync(path)[0]!)
    writeFileSync(file, JSON.stringify({ ...JSON.parse(readFileSync(file, 'utf8')), ...changes }))
    return file
  }

  it('is told until the last reader of the process has left', () => {
    assert.deepEqual(workers.of('a group'), [])
    const [first, second] = [workers.enter('a group'), workers.enter('a group')]
    const other = new Workers(folder.path)
    assert.match(other.of('a group').join(), new RegExp(`^process ${process.pid} since \\d{4}-`))
    assert.deepEqual(other.of('a grou'), [])
    first()
    assert.equal(other.of('a group').length, 1)
    second()
    assert.deepEqual(other.of('a group'), [])
    workers.enter('a group')()
    assert.deepEqual(other.of('a group'), [])
  })

  it('a process id that was given again does not count', () => {
    workers.enter('g')
    change({ started: `${processStart(process.pid)}0` })
    assert.deepEqual(workers.of('g'), [])
  })

  it('a process of another machine is named with the file to remove', () => {
    workers.enter('g')
    const file = change({ host: 'elsewhere' })
    const [text] = workers.of('g')
    assert.ok(text!.includes('on elsewhere') && text!.endsWith(`remove ${file}`), text)
  })

  it('a file that a power cut left half-written does not count', () => {
    mkdirSync(join(folder.path, 'workers'))
    workers.enter('g')
    const path = join(folder.path, 'workers')
    writeFileSync(join(path, readdirSync(path)[0]!), '{"group":"g"')
    assert.deepEqual(workers.of('g'), [])
  })

  it('positions are refused while another process works, and set once it was killed', async () => {
    const log = await openLmdbLog({ path: folder.path, run: RUN })
    const child = spawn(process.execPath, ['--import', 'tsx', busy, folder.path, RUN], {
      stdio: ['ignore', 'pipe', 'inherit'],
    })
    try {
      let text = ''
      for await (const chunk of child.stdout) {
        text += chunk
        if (text.includes('commit ')) break
      }
      const message = new RegExp(`group busy is at work \\(process ${child.pid} since `)
      await assert.rejects(log.seek('questions', 'busy', [0]), { code: 'GROUP_ACTIVE', message })
    } finally {
      const closed = once(child, 'exit')
      child.kill('SIGKILL')
      await closed
    }
    await log.seek('questions', 'busy', [0])
    assert.deepEqual(await log.committed('questions', 'busy'), [0])
    await log.close()
  })
})

describe('processStart', () => {
  it('says the same as long as a process lives, and another time for another process', async () => {
    assert.equal(processStart(process.pid), processStart(process.pid))
    const child = spawn(process.execPath, ['-e', 'setInterval(() => {}, 1000)'])
    await once(child, 'spawn')
    const id = child.pid!
    assert.notEqual(processStart(id), undefined)
    assert.notEqual(processStart(id), processStart(process.pid))
    const gone = once(child, 'exit')
    child.kill('SIGKILL')
    await gone
    assert.equal(processStart(id), undefined)
  })
})
