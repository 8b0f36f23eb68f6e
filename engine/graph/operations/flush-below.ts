import type { Operation, Value } from '../value.ts'

/** Elements below a threshold become 0. Not differentiated: it guards against rounding. */
export function flushBelow(value: Value, threshold: number): Value {
  const operation: Operation = {
    name: 'flushBelow',
    emit: (builder, [source]) =>
      builder.node('Where', [
        builder.node('Less', [source!, builder.float(threshold)]),
        builder.float(0),
        source!,
      ]),
  }
  return { operation, inputs: [value], shape: value.shape }
}
