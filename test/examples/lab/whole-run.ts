/**
 * The whole lab by the real command line, as `npm start` runs it, held to what the README claims. Minutes long, so
 * it is not among the tests of `npm test`: `npm run lab:check`.
 */
import assert from 'node:assert/strict'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { grasp } from '../../helpers/tiny-run.ts'

const folder = await mkdtemp(join(tmpdir(), 'grasp-lab-'))
after(() => rm(folder, { recursive: true, force: true }))
const config = fileURLToPath(new URL('../../../examples/lab/grasp.yaml', import.meta.url))

async function lab(settings: readonly string[]) {
  const args = ['run', '--config', config, '--json', ...settings.flatMap(setting => ['--set', setting])]
  const { code, stdout, stderr } = await grasp(args, { cwd: folder })
  assert.equal(code, 0, stderr)
  return JSON.parse(stdout)
}

test('GRASP teaches the lab’s student what its teacher knows', async t => {
  const { scores, kl, instances, seconds } = await lab([])
  t.diagnostic(
    `${JSON.stringify(scores)}, KL ${kl.before} to ${kl.after}, kept ${instances.kept}, ${seconds} s`,
  )
  assert.ok(scores.grasp - scores.student >= 0.15, 'the student gained less than 0.15')
  assert.ok(scores.teacher >= scores.grasp - 0.05, 'the teacher is below its student')
  assert.ok(kl.after <= 0.6 * kl.before, 'the KL to the teacher fell by less than 40 %')
  assert.ok(instances.kept < instances.seen, 'validation had nothing to filter')
})
