/** The package as npm would publish it: built JavaScript, without sources or development dependencies. */
import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { mkdtemp, readdir, rm, symlink } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { makeTinyRun } from './helpers/tiny-run.ts'

const run = promisify(execFile)
const root = fileURLToPath(new URL('..', import.meta.url))
const folder = await mkdtemp(join(tmpdir(), 'grasp-package-'))
after(() => rm(folder, { recursive: true, force: true }))

test('the packed package runs from files to policy', async () => {
  const shell = process.platform === 'win32'
  await run('npm', ['pack', '--pack-destination', folder], { cwd: root, shell })
  const [tarball] = await readdir(folder)
  await run('tar', ['xzf', tarball!], { cwd: folder })
  const unpacked = join(folder, 'package')
  const names = await readdir(unpacked)
  assert.ok(!names.includes('cli') && !names.includes('test'), `sources were packed: ${names}`)
  await symlink(join(root, 'node_modules'), join(unpacked, 'node_modules'), 'junction')
  const tiny = await makeTinyRun(8)
  try {
    const binary = join(unpacked, 'bin/grasp.js')
    const args = ['run', '--config', tiny.config, '--json', '--set', 'training.epochs=1']
    const { stdout } = await run(process.execPath, [binary, ...args], { cwd: tiny.folder })
    assert.equal(JSON.parse(stdout).updates, 2)
  } finally {
    await tiny.remove()
  }
})
