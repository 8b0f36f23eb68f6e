import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { CreditCounter, CreditLedger } from '../../bus/credits.ts'

describe('credits', () => {
  it('count records and bytes', () => {
    const credits = new CreditCounter({ records: 3, bytes: 100 })
    assert.equal(credits.take(40), true)
    assert.equal(credits.take(40), true)
    assert.deepEqual(credits.inFlight, { records: 2, bytes: 80 })
    assert.equal(credits.take(40), false, '120 bytes are too many')
    assert.deepEqual(credits.inFlight, { records: 2, bytes: 80 })
  })

  it('let exactly as many records through as there are', () => {
    const credits = new CreditCounter({ records: 3, bytes: 1e9 })
    assert.deepEqual(
      [1, 1, 1, 1].map(bytes => credits.take(bytes)),
      [true, true, true, false],
    )
  })

  it('after running out, refuse until half is back', () => {
    const credits = new CreditCounter({ records: 10, bytes: 1e9 })
    for (let i = 0; i < 11; i++) credits.take(1)
    assert.equal(credits.open, false)
    for (let i = 0; i < 4; i++) credits.give(1)
    assert.equal(credits.take(1), false, '6 of 10 in flight')
    credits.give(1)
    assert.equal(credits.open, true)
    for (let i = 0; i < 5; i++) assert.equal(credits.take(1), true)
    assert.equal(credits.take(1), false)
  })

  it('wait for half of the bytes too', () => {
    const credits = new CreditCounter({ records: 100, bytes: 100 })
    for (const bytes of [30, 30, 30]) credits.take(bytes)
    assert.equal(credits.take(30), false)
    credits.give(30)
    assert.equal(credits.open, false, '60 of 100 bytes in flight')
    credits.give(30)
    assert.equal(credits.take(30), true)
  })

  it('let one record through when nothing is in flight, however large', () => {
    const credits = new CreditCounter({ records: 1, bytes: 10 })
    assert.equal(credits.take(1000), true)
    assert.equal(credits.take(1), false)
    credits.give(1000)
    assert.equal(credits.take(1000), true)
  })

  it('let as many through as a stage needs before it finishes any', () => {
    const credits = new CreditCounter({ records: 2, bytes: 10, atLeast: 4 })
    assert.deepEqual(
      [9, 9, 9, 9, 9].map(bytes => credits.take(bytes)),
      [true, true, true, true, false],
    )
    credits.give(9)
    assert.equal(credits.take(9), true, 'three are left to a stage that needs four')
    assert.equal(credits.take(9), false)
  })

  it('without a limit never refuse', () => {
    const limit = { records: Number.POSITIVE_INFINITY, bytes: Number.POSITIVE_INFINITY }
    const credits = new CreditCounter(limit)
    for (let i = 0; i < 1000; i++) assert.equal(credits.take(1e12), true)
  })

  describe('in a ledger', () => {
    it('let so many of each partition through, whatever the others hold', () => {
      const ledger = new CreditLedger({ records: 2, bytes: 10, atLeastEach: 2 })
      const take = (partition: number, offset: number) => ledger.take({ partition, offset }, 9)
      assert.deepEqual(
        [0, 1, 2].map(offset => take(0, offset)),
        [true, true, false],
      )
      assert.ok(ledger.open, 'for the other partition')
      assert.deepEqual(
        [0, 1, 2].map(offset => take(1, offset)),
        [true, true, false],
      )
      ledger.settle(0, 1)
      assert.deepEqual([take(1, 2), take(0, 2), take(0, 3)], [false, true, false])
    })

    const fill = () => {
      const ledger = new CreditLedger({ records: 100, bytes: 1e9 })
      for (const offset of [5, 6, 7]) ledger.take({ partition: 0, offset }, 10)
      for (const offset of [5, 6]) ledger.take({ partition: 1, offset }, 1)
      return ledger
    }

    it('come back for everything below a position of the partition', () => {
      const ledger = fill()
      ledger.settle(0, 7)
      assert.deepEqual(ledger.inFlight, { records: 3, bytes: 12 })
      ledger.settle(0, 7)
      ledger.settle(1, 5)
      ledger.settle(9, 100)
      assert.deepEqual(ledger.inFlight, { records: 3, bytes: 12 })
      ledger.settle(0, 1000)
      ledger.settle(1, 1000)
      assert.deepEqual(ledger.inFlight, { records: 0, bytes: 0 })
    })

    it('come back once for a record that is released and then committed', () => {
      const ledger = fill()
      ledger.release({ partition: 0, offset: 6 })
      ledger.release({ partition: 0, offset: 6 })
      ledger.release({ partition: 0, offset: 99 })
      ledger.release({ partition: 9, offset: 6 })
      assert.deepEqual(ledger.inFlight, { records: 4, bytes: 22 })
      ledger.settle(0, 8)
      assert.deepEqual(ledger.inFlight, { records: 2, bytes: 2 })
    })

    it('take nothing for what they refuse', () => {
      const ledger = new CreditLedger({ records: 1, bytes: 100 })
      assert.equal(ledger.take({ partition: 0, offset: 0 }, 10), true)
      assert.equal(ledger.take({ partition: 0, offset: 1 }, 10), false)
      assert.equal(ledger.open, false)
      ledger.settle(0, 2)
      assert.deepEqual(ledger.inFlight, { records: 0, bytes: 0 })
      assert.equal(ledger.open, true)
    })
  })
})
