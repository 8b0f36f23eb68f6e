import type { Value } from '../value.ts'
import { add } from './add.ts'
import { composite } from './composite.ts'
import { multiply } from './multiply.ts'
import { sigmoid } from './sigmoid.ts'
import { subtract } from './subtract.ts'

/**
 * h = silu(gate) · up with silu(a) = a · σ(a) (Shazeer, arXiv:2002.05202). With s = σ(gate) and silu' =
 * s + silu · (1 − s), the gradient at the gate is dh · (h + s · (up − h)).
 */
export function swiglu(gate: Value, up: Value): Value {
  const s = sigmoid(gate)
  const silu = multiply(gate, s)
  const h = multiply(silu, up)
  return composite('swiglu', [gate, up], h, adjoint => [
    multiply(adjoint, add(h, multiply(s, subtract(up, h)))),
    multiply(adjoint, silu),
  ])
}
