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
      const { traces } = await layers.trace(weights, x, 0)
      await layers.release()
      return traces
    }
    const all = await keptWith(Number.POSITIVE_INFINITY)
    const [first, last] = all.map(({ kept }) =>
      Object.values(kept!).reduce((sum, { size }) => sum + 4 * size, 0),
    )
    assert(all.length === 2 && first! > 0 && last! > 0)
    for (const [budget, expected] of [
      [0, 0],
      [first!, 1],
      [first! + last! - 1, 1],
      [first! + last!, 2],
    ] as const) {
      assert.equal((await keptWith(budget)).filter(({ kept }) => kept).length, expected, `${budget} bytes`)
    }
  })
})
