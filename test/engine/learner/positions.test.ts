import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import type { ModelConfig } from '../../../engine/architectures/config.ts'
import { resolveShape } from '../../../engine/learner/buffers.ts'
import {
  LEAST_LENGTH,
  positionFeeds,
  positionLengths,
  positionValues,
} from '../../../engine/learner/positions.ts'

const config = { headDim: 4, contextLength: 32, ropeTheta: 10_000 } as ModelConfig

describe('positions', () => {
  it('blocks cover every query once and let it see itself and what is before, nothing after', () => {
    for (let length = LEAST_LENGTH; length <= 17; length++) {
      const feeds = positionFeeds(config)(length)
      const seen: string[] = []
      let query = 0
      for (let block = 0; feeds[`mask.${block}`]; block++) {
        const { dims, data } = feeds[`mask.${block}`]!
        assert(dims[0]! > 0, `block ${block} at length ${length} is empty`)
        for (let row = 0; row < dims[0]!; row++, query++) {
          const values = (data as Float32Array).subarray(row * dims[1]!, (row + 1) * dims[1]!)
          const open = [...values.keys()].filter(key => values[key] === 0)
          assert.deepEqual(
            open,
            Array.from({ length: query + 1 }, (_, key) => key),
          )
          for (const value of values) assert(value === 0 || Math.exp(value) === 0)
          seen.push(`${query}`)
        }
      }
      assert.equal(query, length)
    }
  })

  it('feeds have the shapes that the graph names', () => {
    const feeds = positionFeeds(config)(11)
    const { cos, blocks } = positionValues(config)
    assert.deepEqual(feeds.cos!.dims, resolveShape(cos.shape, positionLengths(11)))
    for (const [block, { mask }] of blocks.entries()) {
      assert.deepEqual(feeds[`mask.${block}`]!.dims, resolveShape(mask.shape, positionLengths(11)))
    }
  })

  it('resolves products of lengths', () => {
    assert.deepEqual(resolveShape(['B', '3·T', 2], { B: 5, T: 7 }), [5, 21, 2])
  })
})
