import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import type { ModelConfig } from '../../../engine/architectures/config.ts'
import { resolveShape } from '../../../engine/learner/buffers.ts'
import {
  LEAST_LENGTH,
  positionFeeds,
  positionLengths,
  positionValues,
  reachesOf,
} from '../../../engine/learner/positions.ts'
import type { Feeds } from '../../../engine/runtime/session.ts'

const config = { headDim: 4, contextLength: 32, ropeTheta: 10_000 } as ModelConfig

const windowed = (tokens: number, layers = [true, false]): ModelConfig => ({
  ...config,
  slidingWindow: { tokens, layers },
})

/** Which keys each query looks at, by what is fed; `start` is the first key of each block. */
function looksAt(feeds: Feeds, mask: string, start: (block: number) => number): number[][] {
  const seen: number[][] = []
  for (let block = 0; feeds[`${mask}.${block}`]; block++) {
    const { dims, data } = feeds[`${mask}.${block}`]!
    assert(dims[0]! > 0, `block ${block} is empty`)
    for (let row = 0; row < dims[0]!; row++) {
      const values = (data as Float32Array).subarray(row * dims[1]!, (row + 1) * dims[1]!)
      for (const value of values) assert(value === 0 || Math.exp(value) === 0)
      seen.push([...values.keys()].filter(key => values[key] === 0).map(key => key + start(block)))
    }
  }
  return seen
}

const between = (from: number, to: number) => Array.from({ length: to - from }, (_, i) => from + i)

describe('positions', () => {
  it('blocks cover every query once and let it see itself and what is before, nothing after', () => {
    for (let length = LEAST_LENGTH; length <= 17; length++) {
      assert.deepEqual(
        looksAt(positionFeeds(config)(length), 'mask', () => 0),
        between(0, length).map(query => between(0, query + 1)),
      )
    }
  })

  it('in a window a query sees itself and what is before it up to the window, and no keys are fed in vain', () => {
    for (let length = LEAST_LENGTH; length <= 17; length++) {
      for (const window of [1, 2, 5, 16, 40]) {
        const feeds = positionFeeds(windowed(window))(length)
        const start = (block: number) => Number((feeds[`window.start.${block}`]!.data as BigInt64Array)[0])
        assert.deepEqual(
          looksAt(feeds, 'window.mask', start),
          between(0, length).map(query => between(Math.max(0, query - window + 1), query + 1)),
        )
        for (let block = 0; block < 4; block++) {
          const [rows, keys] = feeds[`window.mask.${block}`]!.dims as [number, number]
          assert(keys <= rows + window - 1)
        }
      }
    }
  })

  it('in a tail there are queries of its rows alone, and they see what they do among all', () => {
    for (let length = LEAST_LENGTH; length <= 17; length++) {
      for (let from = 0; from <= length - LEAST_LENGTH; from++) {
        const feeds = positionFeeds(windowed(5))(length, from)
        const start = (block: number) => Number((feeds[`window.start.${block}`]!.data as BigInt64Array)[0])
        const queries = between(from, length)
        assert.deepEqual(
          looksAt(feeds, 'mask', () => 0),
          queries.map(query => between(0, query + 1)),
        )
        assert.deepEqual(
          looksAt(feeds, 'window.mask', start),
          queries.map(query => between(Math.max(0, query - 4), query + 1)),
        )
      }
    }
  })

  it('feeds are those of the reaches that the layers have', () => {
    const has = (model: ModelConfig) => {
      const feeds = positionFeeds(model)(8)
      return ['mask.0', 'window.mask.0'].filter(name => name in feeds)
    }
    assert.deepEqual(has(config), ['mask.0'])
    assert.deepEqual(has(windowed(4)), ['mask.0', 'window.mask.0'])
    assert.deepEqual(has(windowed(4, [true, true])), ['window.mask.0'])
    assert.deepEqual(reachesOf(windowed(4, [true, true])), ['window'])
  })

  it('feeds have the shapes that the graph names', () => {
    const model = windowed(3)
    const feeds = positionFeeds(model)(11, 3)
    const lengths = positionLengths(model, 11, 3)
    for (const reach of ['full', 'window'] as const) {
      const { cos, blocks } = positionValues(model, reach, 'tail')
      assert.deepEqual(feeds.cos!.dims, resolveShape(cos.shape, lengths))
      for (const [block, { mask }] of blocks.entries()) {
        const fed = feeds[`${reach === 'full' ? '' : 'window.'}mask.${block}`]!
        assert.deepEqual(fed.dims, resolveShape(mask.shape, lengths))
      }
    }
  })

  it('resolves products of lengths', () => {
    assert.deepEqual(resolveShape(['B', '3·T', 2], { B: 5, T: 7 }), [5, 21, 2])
  })
})
