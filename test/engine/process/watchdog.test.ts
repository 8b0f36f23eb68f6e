import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Watchdog } from '../../../engine/process/watchdog.ts'

test('a watchdog barks once, after so many seconds of silence', t => {
  t.mock.timers.enable({ apis: ['setTimeout'] })
  const pass = (seconds: number) => {
    for (let second = 0; second < seconds; second++) t.mock.timers.tick(1000)
  }
  const barks: number[] = []
  let patience = 10
  const dog = new Watchdog(
    () => patience,
    seconds => barks.push(seconds),
  )
  pass(60)
  assert.deepEqual(barks, [], 'it has not been told to watch')
  dog.watch()
  pass(9)
  dog.heard()
  pass(9)
  // What is watched already is not watched anew.
  dog.watch()
  assert.deepEqual(barks, [])
  pass(1)
  assert.deepEqual(barks, [10])
  pass(60)
  assert.deepEqual(barks, [10])

  dog.watch()
  pass(5)
  dog.rest()
  pass(60)
  dog.watch()
  patience = 3
  pass(2)
  assert.deepEqual(barks, [10])
  pass(1)
  assert.deepEqual(barks, [10, 3])
})
