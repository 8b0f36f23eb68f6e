/** The engine with an adapter, and with moments in bf16. */
import assert from 'node:assert/strict'
import { mkdir, mkdtemp, readFile, rm, stat } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, describe, it } from 'node:test'
import { readAdapter } from '../../../engine/checkpoint/checkpoint.ts'
import { openLocalEngine } from '../../../engine/local-engine.ts'
import { writeAdapter } from '../../../engine/lora/write-adapter.ts'
import type {
  Engine,
  EngineOptions,
  LoraOptions,
  SamplingOptions,
  UpdateOptions,
} from '../../../engine/port.ts'
import { SafetensorsFile } from '../../../engine/weights/safetensors.ts'
import { makeTinyModel, type TinyModel } from '../../helpers/tiny-model.ts'
import { ITEMS, tinyIds as ids } from '../learner/items.ts'

const LORA: LoraOptions = {
  rank: 3,
  alpha: 6,
  rankStabilised: false,
  targets: ['q_proj', 'down_proj'],
  seed: 4,
}
const UPDATE: UpdateOptions = {
  responses: 2,
  learningRate: 1e-2,
  betas: [0.9, 0.95],
  epsilon: 1e-8,
  weightDecay: 0.1,
  clip: 1,
}
const SAMPLING: SamplingOptions = {
  temperature: 1,
  topK: 0,
  topP: 1,
  minP: 0,
  stop: [],
  maxNewTokens: 6,
  seed: 5,
}

describe('training an adapter', () => {
  let folder: string
  let model: TinyModel
  const opened: Engine[] = []
  const open = async (options: Partial<EngineOptions> = {}) => {
    const engine = await openLocalEngine({
      path: model.path,
      device: 'cpu',
      threads: 2,
      keepPolicies: 1,
      tokensPerPass: 256,
      sequencesPerPass: 4,
      ...options,
    })
    opened.push(engine)
    return engine
  }
  const step = async (engine: Engine) => {
    const { losses } = await engine.accumulate(ITEMS)
    return { ...(await engine.update(UPDATE)), losses }
  }
  const size = async (path: string) => (await stat(path)).size

  before(async () => {
    folder = await mkdtemp(join(tmpdir(), 'grasp-lora-'))
    model = await makeTinyModel()
  })
  after(async () => {
    for (const engine of opened) await engine.close()
    await model.remove()
    await rm(folder, { recursive: true })
  })

  it('learns, by the seed, and begins with the model as it is', async () => {
    const [one, same, other] = [
      await open({ lora: LORA }),
      await open({ lora: LORA, threads: 1 }),
      await open({ lora: { ...LORA, seed: 5 } }),
    ]
    const full = await open()
    const before = await full.accumulate(ITEMS)
    const first = await step(one)
    assert.deepEqual(first.losses, before.losses)
    assert.deepEqual(await step(same), first)
    assert.notEqual((await step(other)).weightsHash, first.weightsHash)
    let last = first
    for (let i = 0; i < 5; i++) last = await step(one)
    assert(
      last.losses.every((loss, i) => loss < first.losses[i]! - 0.1),
      `${first.losses} to ${last.losses}`,
    )
    assert.equal(await one.weightsHash('teacher'), await full.weightsHash('teacher'))
  })

  for (const [what, options] of Object.entries({ 'all parameters': {}, 'an adapter': { lora: LORA } })) {
    it(`a version that nobody keeps is written over with the same results: ${what}`, async () => {
      const [kept, replaced] = [
        await open({ ...options, keepPolicies: 2 }),
        await open({ ...options, keepPolicies: 0 }),
      ]
      const before = await replaced.weightsHash('teacher')
      for (const engine of [kept, replaced]) await engine.update({ ...UPDATE, responses: 0 })
      for (let i = 0; i < 4; i++) {
        const made = await step(kept)
        assert.deepEqual(await step(replaced), made)
        const prompt = { key: 'x', ids: ids(6, 3) }
        const sampling = { ...SAMPLING, seed: i }
        assert.deepEqual(
          await replaced.generate(made.version, [prompt], sampling),
          await kept.generate(made.version, [prompt], sampling),
        )
        const item = { studentPrompt: ids(5, 2), teacherPrompt: ids(7, 2), response: ids(4, 9) }
        const scoring = { policyVersion: made.version, encoding: 'factored', dtype: 'f32' } as const
        assert.deepEqual(await replaced.score([item], scoring), await kept.score([item], scoring))
      }
      assert.equal(await replaced.weightsHash('teacher'), before)
      const path = join(folder, `replaced ${what}`)
      await replaced.exportPolicy(5, path, 'f32')
      assert.equal(await (await open({ path })).weightsHash('teacher'), await kept.weightsHash(5))
    })
  }

  for (const optimiserState of ['f32', 'bf16'] as const) {
    for (const lora of [LORA, undefined]) {
      const what = lora ? 'an adapter' : 'all parameters'
      it(`goes on from a checkpoint with the same bits: ${what}, moments in ${optimiserState}`, async () => {
        const path = join(folder, `${optimiserState} ${what}`)
        const options: Partial<EngineOptions> = lora ? { lora, optimiserState } : { optimiserState }
        const one = await open(options)
        await step(one)
        await step(one)
        await one.saveCheckpoint(path, 'here')
        const expected = [await step(one), await step(one)]
        const other = await open(options)
        await step(other)
        assert.equal(await other.loadCheckpoint(path), 'here')
        assert.deepEqual([await step(other), await step(other)], expected)
      })
    }
  }

  it('has moments of the factors alone, and half as large in bf16', async () => {
    const sizes = async (what: string) => {
      const path = join(folder, what, 'optimizer.safetensors')
      const file = await SafetensorsFile.open(path)
      const names = [...file.header.tensors.keys()]
      await file.close()
      return { bytes: await size(path), names }
    }
    const [full, half, adapter] = [
      await sizes('f32 all parameters'),
      await sizes('bf16 all parameters'),
      await sizes('f32 an adapter'),
    ]
    assert.deepEqual(half.names, full.names)
    assert(half.bytes < 0.6 * full.bytes && adapter.bytes < 0.2 * full.bytes)
    assert.equal(adapter.names.length, 2 * 2 * 2 * 2)
    assert(
      adapter.names.every(name =>
        /^[mv]\.model\.layers\.[01]\..*(q|down)_proj\.lora_[AB]\.weight$/.test(name),
      ),
    )
  })

  it('one from before the first gradient serves too', async () => {
    const path = join(folder, 'nothing yet')
    const engine = await open({ lora: LORA })
    await engine.saveCheckpoint(path, null)
    const expected = await step(engine)
    assert.equal(await readAdapter(path), undefined)
    await engine.loadCheckpoint(path)
    assert.deepEqual(await step(engine), expected)
  })

  it('refuses a checkpoint that trains something else', async () => {
    const [adapter, full] = [join(folder, 'f32 an adapter'), join(folder, 'f32 all parameters')]
    const refused = async (engine: Engine, path: string, message: RegExp) =>
      assert.rejects(engine.loadCheckpoint(path), { code: 'CHECKPOINT_INVALID', message })
    await refused(await open(), adapter, /trains an adapter \(.*"rank":3.*and this engine all parameters/)
    await refused(await open({ lora: LORA }), full, /trains all parameters, and this engine an adapter/)
    await refused(await open({ lora: { ...LORA, alpha: 7 } }), adapter, /"alpha":6.*"alpha":7/)
  })

  it('names the projections that there are when a target is unknown', async () => {
    await assert.rejects(open({ lora: { ...LORA, targets: ['q_proj', 'query'] } }), {
      code: 'CONFIG_INVALID',
      message:
        /names 'query'.*has q_proj, k_proj, v_proj, o_proj, gate_proj, up_proj, down_proj, and 'all-linear'/,
    })
  })

  it('is exported merged, and as an adapter', async () => {
    const path = join(folder, 'f32 an adapter')
    const engine = await open({ lora: LORA })
    await engine.loadCheckpoint(path)
    await engine.exportPolicy(2, join(folder, 'merged'), 'f32')
    const merged = await open({ path: join(folder, 'merged') })
    assert.equal(await merged.weightsHash('teacher'), await engine.weightsHash(2))

    const { adapter, lora } = (await readAdapter(path))!
    assert.deepEqual(lora, LORA)
    const exported = join(folder, 'adapter')
    await mkdir(exported)
    await writeAdapter(exported, adapter, lora, 'ORG/BASE', 'bf16')
    const config = JSON.parse(await readFile(join(exported, 'adapter_config.json'), 'utf8'))
    assert.deepEqual([config.r, config.lora_alpha, config.use_rslora], [3, 6, false])
    assert.deepEqual(config.target_modules, ['down_proj', 'q_proj'])
    const file = await SafetensorsFile.open(join(exported, 'adapter_model.safetensors'))
    await file.close()
    const entry = file.header.tensors.get('base_model.model.model.layers.1.self_attn.q_proj.lora_A.weight')
    assert.deepEqual([entry?.dtype, entry?.shape], ['BF16', [3, 32]])
    assert.equal(file.header.tensors.size, 8)
  })

  it('notices a damaged adapter', async () => {
    const path = join(folder, 'f32 an adapter')
    await rm(join(path, 'adapter.safetensors'))
    const engine = await open({ lora: LORA })
    await assert.rejects(engine.loadCheckpoint(path), {
      code: 'CHECKPOINT_INVALID',
      message: /adapter.safetensors/,
    })
    await assert.rejects(readAdapter(path), { message: /adapter.safetensors/ })
  })
})
