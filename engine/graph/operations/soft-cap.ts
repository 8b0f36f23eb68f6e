import type { Value } from '../value.ts'
import { composite } from './composite.ts'
import { multiply } from './multiply.ts'
import { scale } from './scale.ts'
import { tanh, tanhSlope } from './tanh.ts'

/** cap · tanh(x / cap): close to x where x is small, never beyond ±cap (Bello et al., arXiv:1611.09940). */
export function softCap(x: Value, cap: number): Value {
  const t = tanh(scale(x, 1 / cap))
  return composite('softCap', [x], scale(t, cap), adjoint => [multiply(adjoint, tanhSlope(t))])
}
