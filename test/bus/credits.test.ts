import assert from 'node:assert/strict'
import { test } from 'node:test'
import { CreditCounter, CreditLedger } from '../../bus/credits.ts'

test('takes until a limit is reached and goes on at half of both', () => {
  const credits = new CreditCounter({ records: 4, bytes: 100 })
  for (let i = 0; i < 4; i++) assert.equal(credits.take(10), true)
  assert.equal(credits.take(10), false)
  credits.give(10)
  assert.equal(credits.take(10), false, 'went on before half was back')
  credits.give(10)
  assert.equal(credits.take(10), true)
  assert.deepEqual(credits.inFlight, { records: 3, bytes: 30 })
})

test('bytes limit as records do', () => {
  const credits = new CreditCounter({ records: 100, bytes: 100 })
  assert.equal(credits.take(60), true)
  assert.equal(credits.take(60), false)
  credits.give(60)
  assert.equal(credits.take(60), true)
})

test('one record is let through however large, and then no other', () => {
  const credits = new CreditCounter({ records: 4, bytes: 100 })
  assert.equal(credits.take(1000), true)
  assert.equal(credits.take(1), false)
})

test('what a stage must gather is let through even while waiting for a refill', () => {
  const credits = new CreditCounter({ records: 4, bytes: 100, atLeast: 3 })
  assert.deepEqual([credits.take(90), credits.take(90), credits.take(90)], [true, true, true])
  assert.equal(credits.take(90), false)
  assert.equal(credits.open, false)
  credits.give(90)
  assert.equal(credits.open, true)
  assert.equal(credits.take(90), true)
})

test('a committed position gives back the records below it, a release one record out of turn', () => {
  const ledger = new CreditLedger({ records: 10, bytes: 1000 })
  for (const offset of [5, 6, 7]) ledger.take({ partition: 0, offset }, 10)
  ledger.take({ partition: 1, offset: 0 }, 10)
  ledger.release({ partition: 0, offset: 6 })
  assert.deepEqual(ledger.inFlight, { records: 3, bytes: 30 })
  ledger.settle(0, 7)
  assert.deepEqual(ledger.inFlight, { records: 2, bytes: 20 })
  ledger.release({ partition: 0, offset: 6 }) // twice gives nothing twice
  assert.deepEqual(ledger.inFlight, { records: 2, bytes: 20 })
})
