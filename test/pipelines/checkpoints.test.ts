import assert from 'node:assert/strict'
import { mkdir, mkdtemp, readdir, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { Checkpoints } from '../../pipelines/checkpoints.ts'

let folder: string
before(async () => {
  folder = await mkdtemp(join(tmpdir(), 'grasp-checkpoints-'))
})
after(() => rm(folder, { recursive: true, force: true }))

test('lists versions by number and ignores what is not a checkpoint', async () => {
  const checkpoints = new Checkpoints(join(folder, 'a'))
  assert.deepEqual(await checkpoints.versions(), [])
  for (const version of [1_000_000, 20, 3]) await mkdir(checkpoints.path(version), { recursive: true })
  await mkdir(join(folder, 'a', 'v000007.partial'))
  assert.deepEqual(await checkpoints.versions(), [3, 20, 1_000_000])
})

test('prunes all but the kept ones', async () => {
  const checkpoints = new Checkpoints(join(folder, 'b'))
  for (const version of [1, 2, 3]) await mkdir(checkpoints.path(version), { recursive: true })
  await checkpoints.prune([1, 3])
  assert.deepEqual(await checkpoints.versions(), [1, 3])
})

test('prunes what was left of writing, and puts back what was replaced but for the last step', async () => {
  const parent = join(folder, 'c')
  const remainders = ['v000001.writing', 'v000002.replaced', 'v000003.replaced', 'v000003.writing']
  const names = [...remainders, 'v000002', 'v000004', 'v000004.bak', 'mine']
  for (const name of names) await mkdir(join(parent, name), { recursive: true })
  await new Checkpoints(parent).prune([2, 3])
  assert.deepEqual((await readdir(parent)).sort(), ['mine', 'v000002', 'v000003', 'v000004.bak'])
})

test('a checkpoint that was about to be replaced is one', async () => {
  const parent = join(folder, 'd')
  for (const name of ['v000003.writing', 'v000003.replaced'])
    await mkdir(join(parent, name), { recursive: true })
  assert.deepEqual(await new Checkpoints(parent).versions(), [3])
})

test('a folder that cannot be read is an error, not "no checkpoint"', async () => {
  const file = join(folder, 'file')
  await writeFile(file, '')
  await assert.rejects(new Checkpoints(file).versions(), {
    code: 'CHECKPOINT_INVALID',
    message: /cannot read the checkpoints/,
  })
})

test('a checkpoint of another run or configuration is refused', () => {
  const checkpoints = new Checkpoints(folder)
  const state = { run: 'lab', configHash: 'h', version: 4, positions: [17], best: null }
  assert.deepEqual(checkpoints.parse(4, state, 'lab', 'h'), state)
  assert.throws(() => checkpoints.parse(4, state, 'other', 'h'), { code: 'CHECKPOINT_INVALID' })
  assert.throws(() => checkpoints.parse(4, state, 'lab', 'other'), { code: 'CHECKPOINT_INVALID' })
  assert.throws(() => checkpoints.parse(4, { version: 4 }, 'lab', 'h'), {
    code: 'CHECKPOINT_INVALID',
    message: /not readable/,
  })
})
