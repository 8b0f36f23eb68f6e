/**
 * llama.cpp computes the same from the GGUF files of these tests as the engine does, where it is installed:
 * `python3`, or the interpreter that GRASP_TEST_PYTHON names, has to have llama-cpp-python. It shows that the tests'
 * files are what llama.cpp's converter writes (order of rows, norms, divisors of frequencies), which the other tests
 * take for granted.
 */
import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { Learner } from '../../../../engine/learner/learner.ts'
import { loadModelDirectory } from '../../../../engine/weights/model-directory.ts'
import { headName } from '../../../../engine/weights/parameter-shapes.ts'
import { ggufModel } from '../../../helpers/gguf-model.ts'
import { SMALL_MODELS } from '../../../helpers/small-models.ts'
import { writeGguf } from '../../../helpers/write-gguf.ts'

const SCRIPT = fileURLToPath(new URL('../../../golden/llama-cpp.py', import.meta.url))
const PYTHON = process.env.GRASP_TEST_PYTHON ?? 'python3'
const IDS = [1, 40, 41, 42, 43, 44, 45, 46, 9, 200, 187, 3]

test('llama.cpp gives the logits of the engine', async t => {
  const folder = await mkdtemp(join(tmpdir(), 'grasp-llama-cpp-'))
  try {
    const paths: string[] = []
    for (const [index, raw] of Object.values(SMALL_MODELS).entries()) {
      paths.push(join(folder, `${index}.gguf`))
      await writeGguf(paths.at(-1)!, ggufModel(raw).content)
    }
    const theirs = await byLlamaCpp(t, paths)
    if (!theirs) return
    for (const [index, name] of Object.keys(SMALL_MODELS).entries()) {
      const ours = await byEngine(paths[index]!)
      const greatest = ours.reduce((max, value) => Math.max(max, Math.abs(value)), 0)
      const error =
        ours.reduce((max, value, i) => Math.max(max, Math.abs(value - theirs[index]![i]!)), 0) / greatest
      t.diagnostic(`${name}: ${error.toExponential(1)}`)
      // llama.cpp looks GELU up in a table of half precision.
      assert.ok(
        error < (name === 'gemma2' ? 2e-3 : 1e-5),
        `${name}: logits differ by ${error} of the greatest`,
      )
    }
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
})

/** [T × V] of each model, or undefined, with the test skipped, where llama.cpp is not installed. */
async function byLlamaCpp(t: TestContext, paths: readonly string[]): Promise<number[][] | undefined> {
  const cases = JSON.stringify(paths.map(path => ({ path, ids: IDS })))
  try {
    const { stdout } = await promisify(execFile)(PYTHON, [SCRIPT, cases], { maxBuffer: 1e8 })
    return stdout
      .trim()
      .split('\n')
      .map(line => JSON.parse(line).logits.flat())
  } catch (error) {
    const { code, stderr } = error as { code: unknown; stderr?: string }
    if (code !== 'ENOENT' && code !== 3) throw error
    const why = code === 3 ? stderr!.trim() : 'it is not there'
    t.skip(`needs ${PYTHON} with llama-cpp-python (${why}); GRASP_TEST_PYTHON names another interpreter`)
    return undefined
  }
}

async function byEngine(path: string): Promise<Float32Array> {
  const { config, weights } = await loadModelDirectory(path)
  const learner = await Learner.create(config, { threads: 1, tokensPerPass: 64 })
  try {
    const ids = Int32Array.from(IDS)
    const [hidden] = await learner.hiddenStates(weights, [{ ids, from: 0, count: ids.length }])
    return await learner.logits({ hidden: hidden!, head: weights.get(headName(config))! })
  } finally {
    await learner.close()
  }
}
