import type { Operation, Value } from '../value.ts'

/** The greater of each element and a constant. Not differentiated: it guards against rounding. */
export function maximum(value: Value, floor: number): Value {
  const operation: Operation = {
    name: 'maximum',
    emit: (builder, [source]) => builder.node('Max', [source!, builder.float(floor)]),
  }
  return { operation, inputs: [value], shape: value.shape }
}
