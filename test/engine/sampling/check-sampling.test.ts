import assert from 'node:assert/strict'
import { test } from 'node:test'
import { checkSamples, checkSampling } from '../../../engine/sampling/check-sampling.ts'

const GOOD = { temperature: 1, topK: 0, topP: 1, minP: 0, stop: [], maxNewTokens: 1, seed: 0 }

test('sampling options out of range are named', () => {
  checkSampling(GOOD)
  checkSampling({
    temperature: 0,
    topK: 5,
    topP: 0.1,
    minP: 1,
    stop: ['a\n', '\u{1f600}'],
    maxNewTokens: 9,
    seed: -3,
  })
  const cases = {
    temperature: [-1, Number.NaN, Number.POSITIVE_INFINITY],
    topK: [-1, 1.5],
    topP: [0, 1.1, Number.NaN],
    minP: [-0.1, 1.1, Number.NaN],
    maxNewTokens: [0, 2.5, Number.NaN],
    seed: [0.5, 2 ** 60],
  }
  for (const [name, values] of Object.entries(cases)) {
    for (const value of values) {
      assert.throws(() => checkSampling({ ...GOOD, [name]: value }), {
        code: 'CONFIG_INVALID',
        message: new RegExp(`${name} is ${value}, expected`),
      })
    }
  }
})

test('stop strings that no text can contain are named', () => {
  const cases: [unknown, RegExp][] = [
    [[''], /sampling: stop\[0\] is "", expected a text of at least one character/],
    [['a', '\ud800'], /stop\[1\] is /],
    [['a\ufffd'], /stop\[0\] is /],
    [[3], /stop\[0\] is 3, expected/],
    ['a', /stop is "a", expected a list of strings/],
    [undefined, /stop is undefined, expected/],
  ]
  for (const [stop, message] of cases) {
    assert.throws(() => checkSampling({ ...GOOD, stop: stop as string[] }), {
      code: 'CONFIG_INVALID',
      message,
    })
  }
})

test('a number of samples that is none is named, with its prompt', () => {
  const ids = Int32Array.of(1)
  checkSamples({ key: 'a', ids })
  checkSamples({ key: 'a', ids, samples: 3 })
  for (const samples of [0, 1.5, -1, Number.NaN]) {
    const message = new RegExp(`samples of a is ${samples}, expected a whole number from 1`)
    assert.throws(() => checkSamples({ key: 'a', ids, samples }), { code: 'CONFIG_INVALID', message })
  }
})
