import assert from 'node:assert/strict'
import { existsSync, mkdtempSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { makeFolder, makeNamedFolder } from '../../errors/make-folder.ts'

const root = mkdtempSync(join(tmpdir(), 'grasp-folders-'))
after(() => rmSync(root, { recursive: true }))

test('makes what is missing, and leaves what is there', () => {
  makeFolder(join(root, 'a/b/c'))
  makeFolder(join(root, 'a/b/c'))
  assert.ok(statSync(join(root, 'a/b/c')).isDirectory())
})

test('a file in the way is said', () => {
  writeFileSync(join(root, 'file'), '')
  for (const path of ['file', 'file/x', 'file/x/y']) {
    assert.throws(() => makeNamedFolder('output.path', join(root, path)), {
      code: 'CONFIG_INVALID',
      message: /^output\.path: the folder \S+ cannot be made: a part of this path is a file; name one/,
    })
  }
})

// Node's own recursive mkdir never returns there (nodejs/node, seen with 20.20).
test('where the system takes no folders, it ends', { skip: !existsSync('/proc/self') }, () => {
  for (const path of ['/proc/grasp', '/proc/grasp/x'])
    assert.throws(() => makeNamedFolder('export', path), { code: 'CONFIG_INVALID', message: /ENOENT/ })
})
