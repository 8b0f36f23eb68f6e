import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { GradientSums } from '../../../engine/learner/gradient-sums.ts'

describe('GradientSums', () => {
  it('an empty sum is 0 to who adds, whatever its memory held', () => {
    const sums = new GradientSums(new Map([['w', [2]]]))
    assert(sums.isEmpty('w'))
    sums.data('w').set([1, 2])
    assert(!sums.isEmpty('w'))
    assert.deepEqual(sums.data('w'), Float32Array.of(1, 2))
    sums.clear()
    assert(sums.isEmpty('w'))
    assert.deepEqual(sums.data('w'), new Float32Array(2))
  })

  it('who begins a sum writes over what its memory held', () => {
    const sums = new GradientSums(new Map([['w', [2]]]))
    const { data } = sums.begin('w')
    ;(data as Float32Array).set([3, 4])
    assert.deepEqual(sums.data('w'), Float32Array.of(3, 4))
  })
})
