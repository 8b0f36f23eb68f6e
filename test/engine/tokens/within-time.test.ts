import assert from 'node:assert/strict'
import { test } from 'node:test'
import { TimeOver, withinTime } from '../../../engine/tokens/within-time.ts'

test('what the work gives or throws is given or thrown as it is', () => {
  const given = { a: 1 }
  assert.equal(
    withinTime(10, () => given),
    given,
  )
  const thrown = new TypeError('no')
  assert.throws(
    () =>
      withinTime(10, () => {
        throw thrown
      }),
    error => error === thrown,
  )
})

test('work that does not end is ended, also where it catches what it can', () => {
  const endless = () => {
    for (;;) {
      try {
        for (;;);
      } catch {}
    }
  }
  assert.throws(() => withinTime(0.05, endless), TimeOver)
  const backtracking = () => /^(a+)+$/.test(`${'a'.repeat(60)}b`)
  assert.throws(() => withinTime(0.05, backtracking), TimeOver)
  assert.equal(
    withinTime(10, () => 'and the next one works'),
    'and the next one works',
  )
})
