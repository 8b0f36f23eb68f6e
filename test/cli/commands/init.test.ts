import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { loadConfig } from '../../../pipelines/config/load.ts'
import { Workspace } from '../grasp.ts'

test('init writes a configuration that loads, once', async () => {
  using workspace = new Workspace()
  const first = await workspace.grasp('init')
  assert.equal(first.code, 0)
  assert.match(first.stdout, /^grasp\.yaml is written\. Fill in model\.path and data\.train/)
  assert.equal(loadConfig({ cwd: workspace.path }).run, 'my-run')

  workspace.write('grasp.yaml', '# mine')
  const second = await workspace.grasp('init')
  assert.equal(second.code, 2)
  assert.match(second.stderr, /^error CONFIG_INVALID: grasp\.yaml is already there; --force overwrites it$/m)
  assert.equal(readFileSync(join(workspace.path, 'grasp.yaml'), 'utf8'), '# mine')

  const forced = await workspace.grasp('init', '--force', '--json')
  assert.deepEqual(JSON.parse(forced.stdout), { file: 'grasp.yaml' })
  assert.equal(loadConfig({ cwd: workspace.path }).run, 'my-run')

  const elsewhere = await workspace.grasp('init', 'no/such/folder.yaml')
  assert.equal(elsewhere.code, 2)
  assert.match(elsewhere.stderr, /no\/such\/folder\.yaml cannot be written/)
})
