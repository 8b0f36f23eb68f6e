/** PEFT loads an exported adapter, where it is installed: `python3`, or the interpreter that GRASP_TEST_PYTHON names. */
import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { Tensor } from 'onnxruntime-node'
import { Learner } from '../../../engine/learner/learner.ts'
import { factorShapes } from '../../../engine/lora/adapter.ts'
import { Merger } from '../../../engine/lora/merger.ts'
import { writeAdapter } from '../../../engine/lora/write-adapter.ts'
import type { LoraOptions } from '../../../engine/port.ts'
import { loadModelDirectory } from '../../../engine/weights/model-directory.ts'
import { headName } from '../../../engine/weights/parameter-shapes.ts'
import { uniform } from '../../golden/weights.ts'
import { makeTinyModel } from '../../helpers/tiny-model.ts'
import { assertClose, relativeError } from '../learner/close-to.ts'

const SCRIPT = fileURLToPath(new URL('../../golden/adapter-logits.py', import.meta.url))
const PYTHON = process.env.GRASP_TEST_PYTHON ?? 'python3'
const IDS = [1, 40, 41, 42, 43, 44, 45, 287]
const LORA: LoraOptions = { rank: 3, alpha: 7, rankStabilised: true, targets: ['all-linear'], seed: 1 }

test('an exported adapter gives in PEFT the logits of the merged weights', async t => {
  const folder = await mkdtemp(join(tmpdir(), 'grasp-peft-'))
  const tiny = await makeTinyModel()
  try {
    const { config, weights } = await loadModelDirectory(tiny.path)
    const adapter = new Map(
      [...factorShapes(config, LORA)].map(([name, shape]) => {
        const draw = uniform(name)
        const data = Float32Array.from({ length: shape[0]! * shape[1]! }, () => 0.2 * draw())
        return [name, new Tensor('float32', data, shape)]
      }),
    )
    await writeAdapter(folder, adapter, LORA, tiny.path, 'f32')
    // Nothing beside the script is to be taken for a package.
    const env = { ...process.env, HF_HUB_OFFLINE: '1', PYTHONSAFEPATH: '1' }
    const ended = await promisify(execFile)(PYTHON, [SCRIPT, folder, JSON.stringify(IDS)], { env }).catch(
      error => {
        if (error.code !== 'ENOENT' && error.code !== 3) throw error
        return undefined
      },
    )
    if (ended === undefined) {
      t.skip(`needs ${PYTHON} with torch and peft; GRASP_TEST_PYTHON names another interpreter`)
      return
    }
    const theirs: { logits: number[][]; without: number[][] } = JSON.parse(ended.stdout)

    const merger = await Merger.create(config, LORA, { threads: 1 })
    const merged = await merger.merge(weights, adapter)
    await merger.release()
    const learner = await Learner.create(config, { threads: 1, tokensPerPass: 64 })
    const sequence = { ids: Int32Array.from(IDS), from: 0, count: IDS.length }
    const [hidden] = await learner.hiddenStates(merged, [sequence])
    const ours = await learner.logits({ hidden: hidden!, head: merged.get(headName(config))! })
    await learner.close()
    assertClose('logits', ours, theirs.logits.flat())
    assert(relativeError(ours, theirs.without.flat()) > 0.1, 'the adapter counts')
  } finally {
    await tiny.remove()
    await rm(folder, { recursive: true })
  }
})
