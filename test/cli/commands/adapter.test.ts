import assert from 'node:assert/strict'
import { existsSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import { makeTinyRun, type TinyRun } from '../../helpers/tiny-run.ts'
import { grasp } from '../grasp.ts'

describe('a run that trains an adapter', () => {
  let tiny: TinyRun
  const settings = ['training.lora.rank=4', 'training.optimiserState=bf16', 'training.totalUpdates=2']
  const set = [...settings, 'training.warmup=0.5'].flatMap(setting => ['--set', setting])
  const run = (...args: string[]) => grasp([...args, ...set], { cwd: tiny.folder })
  let policy: { version: number; path: string; weightsHash: string }
  before(async () => {
    tiny = await makeTinyRun(8)
    const { code, stdout, stderr } = await run('run', '--json')
    assert.equal(code, 0, stderr)
    policy = JSON.parse(stdout).policy
    assert(policy.version > 0)
  })
  after(() => tiny.remove())

  test('exports the policy with the adapter merged', async () => {
    const { code, stdout, stderr } = await run('export', 'merged', '--json')
    assert.equal(code, 0, stderr)
    assert.equal(JSON.parse(stdout).weightsHash, policy.weightsHash)
  })

  test('exports the adapter alone', async () => {
    const { code, stdout, stderr } = await run('export', 'adapter', '--adapter')
    assert.equal(code, 0, stderr)
    assert.match(stdout, new RegExp(`^the adapter of policy ${policy.version} is in .*adapter \\(f32`))
    const config = JSON.parse(await readFile(join(tiny.folder, 'adapter', 'adapter_config.json'), 'utf8'))
    assert.deepEqual([config.peft_type, config.r, config.lora_alpha], ['LORA', 4, 32])
    assert.equal(config.base_model_name_or_path, join(tiny.folder, 'model'))
    assert.equal(config.target_modules.length, 7)
    const base = await run('export', 'other/deep', '--adapter', '--policy', 'base')
    assert.equal(base.code, 2)
    assert.match(base.stderr, /--adapter: policy 0 is the untrained model; leave the option out/)
    assert.equal(existsSync(join(tiny.folder, 'other')), false)
  })

  test('doctor counts what is trained, and knows the targets', async () => {
    const { code, stdout } = await run('doctor')
    assert.equal(code, 0, stdout)
    assert.match(stdout, /parameters, \d,\d{3} of them trained, /)
    const odd = await run('doctor', '--set', 'training.lora.targets=[query]')
    assert.equal(odd.code, 1)
    assert.match(odd.stdout, /training\.lora\.targets names 'query'; a layer of llama has q_proj, /)
  })

  test('other settings of the adapter are another run', async () => {
    const { code, stderr } = await grasp(['run', ...set, '--set', 'training.lora.rank=5'], {
      cwd: tiny.folder,
    })
    assert.equal(code, 1)
    assert.match(stderr, /LOG_MISMATCH.*training\.lora\.rank was 4 and is 5/s)
  })
})
