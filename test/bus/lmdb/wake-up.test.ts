import assert from 'node:assert/strict'
import { describe, it, mock } from 'node:test'
import { WakeUp } from '../../../bus/lmdb/wake-up.ts'

describe('waking readers', () => {
  it('wakes every sleeper once', () => {
    const wakeUp = new WakeUp()
    const woken: string[] = []
    wakeUp.sleep(() => woken.push('a'))
    wakeUp.sleep(() => woken.push('b'))
    wakeUp.all()
    wakeUp.all()
    assert.deepEqual(woken, ['a', 'b'])
  })

  it('leaves one that cancelled asleep', () => {
    const wakeUp = new WakeUp()
    let woken = 0
    const cancel = wakeUp.sleep(() => woken++)
    cancel()
    cancel()
    wakeUp.all()
    assert.equal(woken, 0)
  })

  it('one that sleeps again while being woken waits for the next time', () => {
    const wakeUp = new WakeUp()
    let woken = 0
    const again = () => {
      woken++
      wakeUp.sleep(again)
    }
    const cancel = wakeUp.sleep(again)
    wakeUp.all()
    assert.equal(woken, 1)
    wakeUp.all()
    assert.equal(woken, 2)
    cancel()
  })

  it('looks for other processes every 100 ms, only while somebody waits', () => {
    mock.timers.enable({ apis: ['setInterval'] })
    try {
      const wakeUp = new WakeUp()
      let woken = 0
      const nap = () => wakeUp.sleep(() => woken++)
      nap()
      mock.timers.tick(99)
      assert.equal(woken, 0)
      mock.timers.tick(1)
      assert.equal(woken, 1)
      mock.timers.tick(1000)
      assert.equal(woken, 1)
      nap()
      mock.timers.tick(100)
      assert.equal(woken, 2)
      nap()()
      mock.timers.tick(1000)
      assert.equal(woken, 2)
    } finally {
      mock.timers.reset()
    }
  })
})
