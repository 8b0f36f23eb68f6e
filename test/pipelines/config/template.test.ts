import assert from 'node:assert/strict'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, test } from 'node:test'
import { loadConfig } from '../../../pipelines/config/load.ts'
import { formatPath, walk } from '../../../pipelines/config/shape.ts'
import { configTemplate } from '../../../pipelines/config/template.ts'

function load(text: string) {
  const folder = mkdtempSync(join(tmpdir(), 'grasp-template-'))
  try {
    writeFileSync(join(folder, 'grasp.yaml'), text)
    return loadConfig({ cwd: folder })
  } finally {
    rmSync(folder, { recursive: true })
  }
}
/** Without what depends on the folder. */
const settings = (text: string) => {
  const { log, output, model, data, ...rest } = load(text)
  return rest
}

describe('configTemplate', () => {
  test('names every key of the schema', () => {
    const text = configTemplate()
    for (const [path] of walk()) {
      assert.match(text, new RegExp(`^ *(# )?${path.at(-1)}:`, 'm'), formatPath(path))
    }
  })

  test('its commented lines are the defaults: with and without them it says the same', () => {
    const text = configTemplate()
    // Only one kind of judge can be active; an embedding model, a user and a registry have no default.
    const judge = text.indexOf('  # Or `chat`')
    const single = text.slice(0, judge) + text.slice(text.indexOf('\n\n', judge))
    const plain = single.replaceAll(/^ {2}# (dense|sasl|registry):\n( {4,}# .*\n)*/gm, '')
    // `# key: value` and `# section:` lines; prose begins with a capital.
    const active = plain.replaceAll(/^( *)# ([a-z]\w*:( \S.*)?)$/gm, '$1$2')
    assert.deepEqual(settings(active), settings(text))
    assert.notEqual(active, text)
  })

  test('fits an editor', () => {
    for (const line of configTemplate().split('\n')) assert.ok(line.length <= 110, line)
  })
})
