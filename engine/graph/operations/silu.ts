import { scalar } from '../input.ts'
import type { Value } from '../value.ts'
import { add } from './add.ts'
import { composite } from './composite.ts'
import { multiply } from './multiply.ts'
import { sigmoid } from './sigmoid.ts'
import { subtract } from './subtract.ts'

/** y = x · σ(x), whose derivative is y + σ(x) · (1 − y). */
export function silu(x: Value): Value {
  const gate = sigmoid(x)
  const y = multiply(x, gate)
  return composite('silu', [x], y, adjoint => [
    multiply(adjoint, add(y, multiply(gate, subtract(scalar(1), y)))),
  ])
}
