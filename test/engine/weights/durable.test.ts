import assert from 'node:assert/strict'
import { cp, mkdir, mkdtemp, readdir, readFile, rename, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, test } from 'node:test'
import { recoverFolder, replaceFolder } from '../../../engine/weights/durable.ts'

let parent: string
let path: string
beforeEach(async () => {
  parent = await mkdtemp(join(tmpdir(), 'grasp-durable-'))
  path = join(parent, 'target')
})
afterEach(() => rm(parent, { recursive: true }))

const fillWith = (text: string) => (folder: string) => writeFile(join(folder, 'file'), text)
const content = () => readFile(join(path, 'file'), 'utf8')

test('a folder is made, and replaced, leaving nothing beside it', async () => {
  await replaceFolder(path, 'file', fillWith('one'))
  await writeFile(join(path, 'old file'), '')
  await replaceFolder(path, 'file', fillWith('two'))
  assert.equal(await content(), 'two')
  assert.deepEqual(await readdir(path), ['file'])
  assert.deepEqual(await readdir(parent), ['target'])
})

test('a failure while filling leaves the former folder as it was', async () => {
  await replaceFolder(path, 'file', fillWith('one'))
  const failing = replaceFolder(path, 'file', async folder => {
    await fillWith('half')(folder)
    throw new Error('disk full')
  })
  await assert.rejects(failing, /disk full/)
  assert.equal(await content(), 'one')
  assert.deepEqual(await readdir(parent), ['target'])
})

test('what a killed writer left is cleared away', async () => {
  await mkdir(`${path}.writing`)
  await writeFile(join(`${path}.writing`, 'half'), '')
  await replaceFolder(path, 'file', fillWith('one'))
  assert.deepEqual(await readdir(path), ['file'])
  for (const mark of ['file', undefined]) {
    await rm(path, { recursive: true, force: true })
    // As it stands when the writer is killed.
    const left = join(parent, 'left')
    await replaceFolder(path, mark, async folder => {
      await fillWith('half')(folder)
      await cp(folder, left, { recursive: true })
    })
    await rm(path, { recursive: true })
    await rename(left, `${path}.writing`)
    await replaceFolder(path, mark, fillWith('one'))
    assert.equal(await content(), 'one')
    assert.deepEqual(await readdir(path), ['file'])
    assert.deepEqual(await readdir(parent), ['target'])
  }
})

test('a link to an empty folder is replaced, and the folder left', async () => {
  await mkdir(join(parent, 'empty'))
  await symlink(join(parent, 'empty'), path)
  await replaceFolder(path, undefined, fillWith('one'))
  assert.deepEqual([await content(), await readdir(join(parent, 'empty'))], ['one', []])
})

test('where nothing is to be replaced, nothing beside the folder is touched', async () => {
  await mkdir(`${path}.replaced`)
  await replaceFolder(path, undefined, fillWith('one'))
  assert.deepEqual((await readdir(parent)).sort(), ['target', 'target.replaced'])
  await mkdir(join(parent, 'other.writing', 'mine'), { recursive: true })
  const other = replaceFolder(join(parent, 'other'), undefined, fillWith('one'))
  await assert.rejects(other, /other\.writing is in the way; move it, or name another folder/)
  assert.deepEqual((await readdir(parent)).sort(), ['other.writing', 'target', 'target.replaced'])
})

test('a death between the two renames is undone', async () => {
  await replaceFolder(path, 'file', fillWith('one'))
  await rename(path, `${path}.replaced`)
  await recoverFolder(path)
  assert.equal(await content(), 'one')
  await mkdir(`${path}.replaced`)
  await recoverFolder(path)
  assert.deepEqual(await readdir(parent), ['target'])
})

test("somebody else's folder is not replaced", async () => {
  await mkdir(path)
  await replaceFolder(path, undefined, fillWith('one'))
  await assert.rejects(replaceFolder(path, undefined, fillWith('two')), /holds other files \(file\)/)
  await assert.rejects(replaceFolder(path, 'state.json', fillWith('two')), /or one with state.json/)
  assert.equal(await content(), 'one')
  assert.deepEqual(await readdir(parent), ['target'])
})
