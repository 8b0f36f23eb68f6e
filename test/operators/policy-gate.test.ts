import assert from 'node:assert/strict'
import { test } from 'node:test'
import { PolicyGate } from '../../operators/policy-gate.ts'

test('waits until the version is reached, and not longer', async () => {
  const gate = new PolicyGate(3)
  await gate.reached(2)
  let reached = false
  const waiting = gate.reached(5).then(() => {
    reached = true
  })
  gate.announce(4)
  await Promise.resolve()
  assert.equal(reached, false)
  gate.announce(5)
  await waiting
  assert.equal(reached, true)
})
