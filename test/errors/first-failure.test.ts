import assert from 'node:assert/strict'
import { test } from 'node:test'
import { firstFailure } from '../../errors/first-failure.ts'
import { GraspError } from '../../errors/grasp-error.ts'

test('of a failure and a failure to close after it, the first is told', async () => {
  const killed = new GraspError('ENGINE_FAILED', 'killed')
  const using = async () => {
    await using _engine = { [Symbol.asyncDispose]: () => Promise.reject(new Error('no engine to close')) }
    await using _log = { [Symbol.asyncDispose]: () => Promise.reject(new Error('no log to close')) }
    throw killed
  }
  assert.equal(await using().catch(firstFailure), killed)
  assert.equal(firstFailure(killed), killed)
})
