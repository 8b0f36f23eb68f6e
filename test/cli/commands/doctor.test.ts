/** The command as it is printed; what each part finds out is tested beside that part. */
import assert from 'node:assert/strict'
import { cp, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { readSafetensors, writeSafetensors } from '../../../engine/weights/safetensors.ts'
import { makeTinyRun, type TinyRun } from '../../helpers/tiny-run.ts'
import { graspHere } from '../in-process.ts'

let empty: string
let run: TinyRun
before(async () => {
  empty = await mkdtemp(join(tmpdir(), 'grasp-doctor-'))
  run = await makeTinyRun(8)
})
after(async () => {
  await run.remove()
  await rm(empty, { recursive: true, force: true })
})

test('without a configuration it tells devices and the largest models that fit', async () => {
  const { code, stdout } = await graspHere(['doctor'], { cwd: empty })
  assert.equal(code, 0, stdout)
  assert.match(
    stdout,
    /^Devices\n {2}cpu +works\n {2}webgpu +(works|none|fails) .*\n {2}cuda +(works|none|fails) /m,
  )
  assert.match(
    stdout,
    /^Largest models that fit on cpu, in [\d.]+ GiB\n {2}full training .*\n {2}LoRA training .*\n {2}decoding /m,
  )
  assert.match(stdout, /No configuration checked/)
})

test('with one it tells what its model takes, by part, and for how long sequences', async () => {
  const { code, stdout } = await graspHere(['doctor', '--config', run.config, '--json'], { cwd: run.folder })
  assert.equal(code, 0, stdout)
  const { ok, devices, memory } = JSON.parse(stdout)
  assert.equal(ok, true)
  assert.deepEqual(
    devices.map(({ provider }: { provider: string }) => provider),
    ['cpu', 'webgpu', 'cuda'],
  )
  const { training, decoding } = memory.fit.use
  assert.equal(memory.device, 'cpu')
  assert.ok(training.bytes > decoding.bytes && memory.free > 0)
  assert.equal(memory.fit.longest.training, memory.context)
  const text = await graspHere(['doctor', '--config', run.config], { cwd: run.folder })
  assert.match(text.stdout, /^ {2}AdamW's moments +0\.24 +–$/m)
  assert.match(
    text.stdout,
    /training fits, with sequences of up to [\d,]+ tokens \(all of the model's context\)/,
  )
})

test('a model that no memory holds is told before its weights are read, with what takes less', async () => {
  const shape = { hidden_size: 65_536, num_hidden_layers: 200, intermediate_size: 262_144 }
  const config = {
    model_type: 'llama',
    ...shape,
    num_attention_heads: 512,
    num_key_value_heads: 8,
    vocab_size: 50_000,
    max_position_embeddings: 4096,
    hidden_act: 'silu',
    rms_norm_eps: 1e-5,
    tie_word_embeddings: true,
  }
  await writeFile(join(empty, 'config.json'), JSON.stringify(config))
  const { code, stdout } = await graspHere(
    ['doctor', '--config', run.config, '--set', `model.path=${empty}`],
    { cwd: run.folder },
  )
  assert.equal(code, 1, stdout)
  assert.match(
    stdout,
    /^FAIL {2}model +.*: training [\d,]+ parameters takes about [\d.]+ TiB, but [\d.]+ GiB are free on cpu/m,
  )
  assert.match(
    stdout,
    /^ {2}training does not fit\n {2}decoding does not fit\n {2}Less memory for training is needed with\n/m,
  )
})

test('weights that are no numbers are told, with the tensor', async () => {
  const model = join(run.folder, 'odd')
  await cp(join(run.folder, 'model'), model, { recursive: true })
  const file = join(model, 'model.safetensors')
  const weights = await readSafetensors(file)
  const norm = weights.get('model.norm.weight')!.data as Float32Array
  norm[0] = Number.NaN
  norm[1] = Number.POSITIVE_INFINITY
  await writeSafetensors(file, weights, { dtype: 'f32' })
  const { code, stdout } = await graspHere(
    ['doctor', '--config', run.config, '--set', `model.path=${model}`],
    { cwd: run.folder },
  )
  assert.equal(code, 1)
  assert.match(
    stdout,
    /^FAIL {2}model +\S+: model\.norm\.weight holds 2 values that are infinite or no numbers/m,
  )
})
