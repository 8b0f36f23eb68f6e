import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { embed } from '../../../engine/learner/embedding.ts'
import { Layers } from '../../../engine/learner/layers.ts'
import { EMBEDDING } from '../../../engine/weights/parameter-shapes.ts'
import { readGolden } from '../../golden/golden.ts'

describe('Layers', () => {
  it('keeps the activations of as many layers as the budget holds', async () => {
    const { config, tensors } = await readGolden('llama-tied')
    const weights = tensors('student')
    const x = embed(weights.get(EMBEDDING)!, [Int32Array.of(1, 2, 3, 4, 5)], { rows: 1, length: 5 })
    const keptWith = async (budget: number) => {
      const layers = await Layers.create(config, budget, { threads: 1 })
      const { traces } = await layers.trace(weights, x)
      await layers.release()
      return traces
    }
    const [first] = await keptWith(Number.POSITIVE_INFINITY)
    const bytes = Object.values(first!.kept!).reduce((sum, { size }) => sum + 4 * size, 0)
    assert(bytes > 0)
    for (const [budget, expected] of [
      [bytes - 1, 0],
      [bytes, 1],
      [2 * bytes - 1, 1],
      [2 * bytes, 2],
    ] as const) {
      assert.equal((await keptWith(budget)).filter(({ kept }) => kept).length, expected, `${budget} bytes`)
    }
  })
})
