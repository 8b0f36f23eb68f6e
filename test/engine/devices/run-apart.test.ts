import assert from 'node:assert/strict'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { pathToFileURL } from 'node:url'
import { runApart } from '../../../engine/devices/run-apart.ts'

let folder: string
before(async () => {
  folder = await mkdtemp(join(tmpdir(), 'grasp-apart-'))
})
after(() => rm(folder, { recursive: true, force: true }))

/** Runs a program given as its source. */
async function run(source: string, timeoutMs = 30_000) {
  const path = join(folder, 'program.mjs')
  await writeFile(path, source)
  return runApart<{ a: number; b: number }>(pathToFileURL(path), { timeoutMs, arguments: ['given'] })
}

test('findings add up, and what is written to standard error is kept', async () => {
  const { ending, finding, words } = await run(`
    process.send({ finding: { a: Number.NaN } })
    process.send({ finding: { b: process.argv[2] === 'given' ? 2 : 0 } })
    console.error('a word')
    process.disconnect()
  `)
  assert.deepEqual(ending, { kind: 'done' })
  assert.deepEqual(finding, { a: Number.NaN, b: 2 })
  assert.equal(words, 'a word\n')
})

test('a program that dies of a signal is told, with where it was and what it found before', {
  skip: process.platform === 'win32' && 'Windows has no signals',
}, async () => {
  const { ending, finding } = await run(`
    process.send({ finding: { a: 1 } })
    process.send({ stage: 'dividing' }, () => process.kill(process.pid, 'SIGSEGV'))
    setInterval(() => {}, 1000)
  `)
  assert.deepEqual(ending, { kind: 'crashed', why: 'died of SIGSEGV', stage: 'dividing' })
  assert.deepEqual(finding, { a: 1 })
})

test('a program that hangs is ended, and told with where it was', async () => {
  const { ending } = await run(
    `process.send({ stage: 'waiting' }, () => { for (;;); })`,
    // Time enough to say where it is.
    2000,
  )
  assert.deepEqual(ending, { kind: 'hung', seconds: 2, stage: 'waiting' })
})

test('an exit code is a crash; a failure that the program tells is none', async () => {
  const crashed = await run(`process.send({ stage: 'thinking' }, () => process.exit(3))`)
  assert.deepEqual(crashed.ending, { kind: 'crashed', why: 'ended with exit code 3', stage: 'thinking' })
  const failed = await run(`process.send({ failure: 'no device' }); process.disconnect()`)
  assert.deepEqual(failed.ending, { kind: 'failed', why: 'no device' })
})
