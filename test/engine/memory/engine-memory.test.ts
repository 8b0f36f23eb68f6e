import assert from 'node:assert/strict'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'
import type { MemoryMark, MemoryTask } from '../../../bench/memory/task.ts'
import { runPeer } from '../../../bench/peers/run-peer.ts'
import { engineMemory } from '../../../engine/memory/engine-memory.ts'
import { knownModels } from '../../../engine/memory/known-models.ts'
import type { MemoryUse } from '../../../engine/memory/memory-use.ts'
import { DEFAULT_SETTINGS, type MemorySettings } from '../../../engine/memory/settings.ts'
import { readModelConfig } from '../../../engine/weights/model-config.ts'
import { makeTinyModel } from '../../helpers/tiny-model.ts'

const smol = knownModels()[0]!.config
const WEIGHTS = 4 * 134_515_008

function part({ parts }: MemoryUse, what: string): number {
  return parts.find(part => part.what === what)?.bytes ?? 0
}
function training(settings: Partial<MemorySettings>, length = 1024): MemoryUse {
  return engineMemory(smol, { ...DEFAULT_SETTINGS, ...settings })(length).training
}

test('weights, gradients and moments are counted as the engine holds them', () => {
  const use = training({})
  assert.deepEqual(
    ["the teacher's weights", "the student's weights", 'gradients', "AdamW's moments"].map(what =>
      part(use, what),
    ),
    [WEIGHTS, WEIGHTS, WEIGHTS, 2 * WEIGHTS],
  )
  assert.equal(part(training({ optimiserState: 'bf16' }), "AdamW's moments"), WEIGHTS)
  // The version in use, those that rollouts may lag behind, and the one that is being made.
  assert.equal(part(training({ keepPolicies: 2 }), "the student's weights"), 4 * WEIGHTS)
})

test('the cache has room for every sequence up to its length', () => {
  // Keys and values of 30 layers of 3 heads of 64; full blocks of 16 tokens, with one of 32 that is being filled a multiple
  // of 64.
  const ofToken = 4 * 2 * 30 * 3 * 64
  assert.equal(part(training({ sequencesPerPass: 7 }, 1000), 'key/value cache'), 7 * 1024 * ofToken)
  assert.equal(part(training({ sequencesPerPass: 99 }, 64), 'key/value cache'), 32 * 192 * ofToken)
})

test('matrices count once more where decoding packs them', () => {
  // The head is the embedding: every matrix is packed.
  const packed = part(training({}), 'packed matrices')
  assert.ok(packed > 0.99 * WEIGHTS && packed < WEIGHTS)
  assert.equal(part(training({ packed: false }), 'packed matrices'), 0)
})

test('what a sum of parts says is their sum, and longer sequences take more', () => {
  const use = training({})
  assert.equal(
    use.bytes,
    use.parts.reduce((sum, { bytes }) => sum + bytes, 0),
  )
  const lengths = [128, 512, 2048, 8192].map(length => training({}, length).bytes)
  assert.deepEqual(
    lengths.toSorted((a, b) => a - b),
    lengths,
  )
})

test('an estimate is near the greatest resident memory of a process that trains', async () => {
  const model = await makeTinyModel({
    layers: 3,
    hiddenSize: 128,
    intermediateSize: 512,
    heads: 4,
    headDim: 32,
    vocabularySize: 8192,
    contextLength: 512,
    scale: 0.02,
  })
  try {
    const [rows, prompt, response] = [4, 96, 32]
    const task: MemoryTask = {
      engine: {
        path: model.path,
        device: 'cpu',
        threads: 2,
        keepPolicies: 0,
        tokensPerPass: rows * (prompt + response),
        sequencesPerPass: 4,
      },
      ...{ rows, prompt, response, newTokens: 4 },
      steps: 1,
      train: true,
    }
    const child = fileURLToPath(new URL('../../../bench/memory/child.ts', import.meta.url))
    const marks = await runPeer<MemoryMark>([process.execPath, '--import', 'tsx', child], task)
    const measured = Math.max(...marks.map(({ bytes }) => bytes))
    const { config } = await readModelConfig(model.path)
    const settings = { ...task.engine, responseTokens: response, scoredTogether: rows }
    const { bytes } = engineMemory(config, settings)(prompt + response).training
    const ratio = bytes / measured
    assert.ok(ratio > 0.75 && ratio < 1.35, `estimated ${bytes}, measured ${measured}`)
  } finally {
    await model.remove()
  }
})
