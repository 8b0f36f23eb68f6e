import { scalar } from '../input.ts'
import type { Value } from '../value.ts'
import { add } from './add.ts'
import { composite } from './composite.ts'
import { multiply } from './multiply.ts'
import { scale } from './scale.ts'
import { sigmoid } from './sigmoid.ts'
import { subtract } from './subtract.ts'

/** GELU in its tanh form (Hendrycks & Gimpel, arXiv:1606.08415) is a · σ(rate · (a + cubic · a³)). */
export const GELU = { rate: 2 * Math.sqrt(2 / Math.PI), cubic: 0.044715 } as const

/**
 * h = gelu(gate) · up (Shazeer, arXiv:2002.05202). With s the sigmoid and rate · (1 + 3 cubic · a²) the slope of
 * its argument, gelu' = s + gelu · (1 − s) · slope.
 */
export function geglu(gate: Value, up: Value): Value {
  const { rate, cubic } = GELU
  const square = multiply(gate, gate)
  const s = sigmoid(multiply(gate, add(scale(square, rate * cubic), scalar(rate))))
  const gelu = multiply(gate, s)
  return composite('geglu', [gate, up], multiply(gelu, up), adjoint => {
    const slope = add(scale(square, 3 * rate * cubic), scalar(rate))
    const derivative = add(s, multiply(multiply(gelu, subtract(scalar(1), s)), slope))
    return [multiply(multiply(adjoint, up), derivative), multiply(adjoint, gelu)]
  })
}
