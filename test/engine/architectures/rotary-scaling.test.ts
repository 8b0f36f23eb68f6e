import assert from 'node:assert/strict'
import { test } from 'node:test'
import { scaledFrequency } from '../../../engine/architectures/rotary-scaling.ts'

/** inv_freq of transformers' `llama3` for Llama 3.2: head_dim 64, base 500000. */
const LLAMA_3_2 = [
  1.0, 0.663601279258728, 0.44036662578582764, 0.2922278344631195, 0.193922758102417, 0.12868738174438477,
  0.08539710193872452, 0.05666961893439293, 0.03760603070259094, 0.02495540864765644, 0.016560440883040428,
  0.010989529080688953, 0.00729266507551074, 0.00483942124992609, 0.0032114461064338684,
  0.0012905480107292533, 0.000429556705057621, 9.708286233944818e-5, 1.9461638657958247e-5,
  1.291476746700937e-5, 8.570255886297673e-6, 5.687232260243036e-6, 3.7740544485131977e-6,
  2.504467147446121e-6, 1.6619674170215148e-6, 1.1028836297555245e-6, 7.318749339901842e-7,
  4.856731266045244e-7, 3.2229328894572973e-7, 2.1387423032592778e-7, 1.4192720243499934e-7,
  9.418306490260875e-8,
]

const plain = Array.from({ length: 32 }, (_, i) =>
  Math.fround(1 / Math.fround(500_000 ** Math.fround((2 * i) / 64))),
)

test('llama3: the frequencies of transformers, to the bit', () => {
  const scaling = {
    kind: 'llama3',
    factor: 32,
    lowFrequencyFactor: 1,
    highFrequencyFactor: 4,
    originalContextLength: 8192,
  } as const
  const scaled = plain.map(frequency => scaledFrequency(frequency, scaling))
  assert.deepEqual(scaled, LLAMA_3_2.map(Math.fround))
  // Short wavelengths stay, long ones are stretched, and some are between.
  assert.equal(scaled[0], plain[0])
  assert.equal(scaled[31], plain[31]! / 32)
  assert(scaled.some((value, i) => value < plain[i]! && value > plain[i]! / 31))
})

test('linear: every frequency divided by the factor; none: as they are', () => {
  for (const frequency of plain) {
    assert.equal(scaledFrequency(frequency, { kind: 'linear', factor: 3 }), Math.fround(frequency / 3))
    assert.equal(scaledFrequency(frequency, undefined), frequency)
  }
})
