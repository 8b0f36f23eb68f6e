/**
 * What the engine saves is loaded by transformers, where that is installed: `python3`, or the interpreter that
 * GRASP_TEST_PYTHON names, has to have torch and transformers.
 */
import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { mkdir, mkdtemp, readdir, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { saveCheckpoint } from '../../../engine/checkpoint/checkpoint.ts'
import { Learner } from '../../../engine/learner/learner.ts'
import { initialState } from '../../../engine/optimiser/adamw.ts'
import { loadModelDirectory } from '../../../engine/weights/model-directory.ts'
import { headName } from '../../../engine/weights/parameter-shapes.ts'
import { weightsHash } from '../../../engine/weights/weights-hash.ts'
import { type WriteModelOptions, writeModel } from '../../../engine/weights/write-model.ts'
import { makeTinyModel } from '../../helpers/tiny-model.ts'

const run = promisify(execFile)
const SCRIPT = fileURLToPath(new URL('../../golden/logits.py', import.meta.url))
const PYTHON = process.env.GRASP_TEST_PYTHON ?? 'python3'
const IDS = [1, 40, 41, 42, 43, 44, 45, 287]

interface Loaded {
  readonly dtype: string
  readonly missing: readonly string[]
  readonly unexpected: readonly string[]
  readonly mismatched: readonly string[]
  /** In the tokenizer's vocabulary. */
  readonly tokens: number
  readonly logits: readonly (readonly number[])[]
}

/** What transformers makes of the directories; undefined, with the test skipped, where it is not installed. */
async function loadInPython(t: TestContext, paths: readonly string[]): Promise<Loaded[] | undefined> {
  const cases = JSON.stringify(paths.map(path => ({ path, ids: IDS })))
  try {
    // Nothing beside the script is to be taken for a package.
    const env = { ...process.env, HF_HUB_OFFLINE: '1', PYTHONSAFEPATH: '1' }
    const { stdout } = await run(PYTHON, [SCRIPT, cases], { env, maxBuffer: 1e8 })
    return stdout
      .trim()
      .split('\n')
      .map(line => JSON.parse(line))
  } catch (error) {
    const { code, stderr } = error as { code: unknown; stderr?: string }
    if (code !== 'ENOENT' && code !== 3) throw error
    const why = code === 3 ? stderr!.trim() : 'it is not there'
    t.skip(
      `needs ${PYTHON} with torch and transformers (${why}); GRASP_TEST_PYTHON names another interpreter`,
    )
    return undefined
  }
}

async function ourLogits(path: string): Promise<number[][]> {
  const { config, weights } = await loadModelDirectory(path)
  const learner = await Learner.create(config, { threads: 1, tokensPerPass: 64 })
  try {
    const ids = Int32Array.from(IDS)
    const [hidden] = await learner.hiddenStates(weights, [{ ids, from: 0, count: ids.length }])
    const logits = await learner.logits({ hidden: hidden!, head: weights.get(headName(config))! })
    const V = config.vocabularySize
    return IDS.map((_, t) => [...logits.subarray(t * V, (t + 1) * V)])
  } finally {
    await learner.close()
  }
}

test('transformers loads checkpoints and exports, sharded or not, f32 or bf16', async t => {
  const folder = await mkdtemp(join(tmpdir(), 'grasp-transformers-'))
  const gemmaConfig = {
    model_type: 'gemma2',
    architectures: ['Gemma2ForCausalLM'],
    sliding_window: 4,
    attn_logit_softcapping: 2,
    final_logit_softcapping: 3,
  }
  const models = [
    await makeTinyModel({ tiedHead: true }),
    await makeTinyModel({ tiedHead: false }),
    await makeTinyModel({ config: gemmaConfig }),
  ]
  try {
    const [tied, untied, gemma] = [
      await loadModelDirectory(models[0]!.path),
      await loadModelDirectory(models[1]!.path),
      await loadModelDirectory(models[2]!.path),
    ]
    const export_ = async (
      name: string,
      ...[source, dtype, options]: [typeof tied, 'f32' | 'bf16', WriteModelOptions?]
    ) => {
      await mkdir(join(folder, name))
      await writeModel(join(folder, name), source, source.weights, dtype, options)
    }
    const teacherHash = weightsHash(tied.weights)
    const optimiser = { ...initialState(tied.weights), steps: 1 }
    await saveCheckpoint(
      join(folder, 'checkpoint'),
      { ...tied, teacher: tied.weights, teacherHash },
      { policyVersion: 2, policies: new Map([1, 2].map(v => [v, tied.weights])), optimiser, state: {} },
      teacherHash,
    )
    await export_('sharded', untied, 'f32', { shardBytes: 50_000 })
    await export_('gemma2', gemma, 'f32')
    await export_('bf16', untied, 'bf16')
    await export_('bf16-sharded', tied, 'bf16', { shardBytes: 30_000 })
    assert.ok((await readdir(join(folder, 'sharded'))).filter(name => name.includes('-of-')).length > 2)
    const names = ['checkpoint', 'sharded', 'gemma2', 'bf16', 'bf16-sharded']
    const loaded = await loadInPython(
      t,
      names.map(name => join(folder, name)),
    )
    if (loaded === undefined) return
    assert.equal(loaded.length, names.length)
    for (const [i, name] of names.entries()) {
      const theirs: Loaded = loaded[i]!
      const ours = await ourLogits(join(folder, name))
      assert.equal(theirs.dtype, name.startsWith('bf16') ? 'torch.bfloat16' : 'torch.float32', name)
      assert.deepEqual([theirs.missing, theirs.unexpected, theirs.mismatched], [[], [], []], name)
      assert.equal(theirs.tokens, 288, name)
      const scale = Math.max(...theirs.logits.flat().map(Math.abs))
      for (const [t, row] of theirs.logits.entries()) {
        for (const [v, logit] of row.entries()) {
          const error = Math.abs(logit - ours[t]![v]!) / scale
          assert.ok(error < 1e-5, `${name}: logit ${v} of token ${t} differs by ${error} of the largest`)
        }
      }
    }
  } finally {
    await rm(folder, { recursive: true })
    for (const model of models) await model.remove()
  }
})
