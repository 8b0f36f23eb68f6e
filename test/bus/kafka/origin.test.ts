import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { type Mark, type Seen, seenOf, seenText } from '../../../bus/kafka/origin.ts'

describe('what was seen', () => {
  it('is the same after being kept beside an offset', () => {
    const seen: Seen = {
      'questions/0': [0, 0, 0],
      'questions/12': [3, 123_456_789_012, 41],
      'contexts/7': [0, 35, 36],
    }
    const text = seenText(seen)
    assert.deepEqual(seenOf(text), seen)
    assert.deepEqual(seenText(seenOf(text)), text)
    assert.deepEqual(seenOf(seenText({})), {})
    assert.equal(seenText({}), '')
  })

  it('is nothing where somebody else wrote something there', () => {
    for (const text of ['', null, undefined, 'by kafka-consumer-groups', '{"a":1}'])
      assert.deepEqual(seenOf(text), {})
  })

  it('is cut to what was seen last where there is no room for all', () => {
    const marks = Array.from(
      { length: 1024 },
      (_, p) => [`questions/${p}`, [0, 1_000_000 + p, 7] as Mark] as const,
    )
    const text = seenText(Object.fromEntries(marks))
    assert.ok(text.length <= 4000 && text.length > 3900, `${text.length}`)
    const kept = Object.entries(seenOf(text))
    assert.ok(kept.length > 250, `${kept.length} of 1024`)
    assert.deepEqual(kept, marks.slice(-kept.length))
  })
})
