import type { Operation, Value } from '../value.ts'

/** value · factor, a constant. */
export function scale(value: Value, factor: number): Value {
  const operation: Operation = {
    name: 'scale',
    cheap: true,
    emit: (builder, [source]) => builder.node('Mul', [source!, builder.float(factor)]),
    gradient: (_, adjoint) => [scale(adjoint, factor)],
  }
  return { operation, inputs: [value], shape: value.shape }
}
