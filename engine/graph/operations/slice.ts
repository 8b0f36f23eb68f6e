/** Cutting an axis into ranges and joining ranges again. */
import { type Dim, expectShape, type Operation, type Value } from '../value.ts'
import { add } from './add.ts'

/** A range of an axis; its bounds are int64 values of shape [1]. */
export interface Range {
  /** The start where absent. */
  readonly from?: Value
  readonly to: Value
  /** Length of the whole axis. */
  readonly of: Value
  /** Name of the range's length. */
  readonly length: Dim
}

/** The range of an axis. Its gradient is 0 outside the range. */
export function slice(value: Value, axis: number, range: Range): Value {
  const operation: Operation = {
    name: 'slice',
    emit: (builder, [source, to, from]) =>
      builder.node('Slice', [source!, from ?? builder.ints([0]), to!, builder.ints([axis])]),
    gradient: (_, adjoint) => [pad(adjoint, axis, range, value.shape[axis]!), null, null],
  }
  return {
    operation,
    inputs: [value, range.to, ...optional(range.from)],
    shape: withDim(value, axis, range.length),
  }
}

/** The value at its range of an axis of the given length, 0 elsewhere. */
function pad(value: Value, axis: number, range: Range, length: Dim): Value {
  const rank = value.shape.length
  const operation: Operation = {
    name: 'pad',
    emit(builder, [source, to, of, from]) {
      const zeros = (count: number) => (count === 0 ? [] : [builder.ints(new Array<number>(count).fill(0))])
      const after = builder.node('Sub', [of!, to!])
      const pads = [
        ...zeros(axis),
        from ?? builder.ints([0]),
        ...zeros(rank - 1),
        after,
        ...zeros(rank - 1 - axis),
      ]
      return builder.node('Pad', [source!, builder.node('Concat', pads, { axis: 0 })])
    },
  }
  const inputs = [value, range.to, range.of, ...optional(range.from)]
  return { operation, inputs, shape: withDim(value, axis, length) }
}

/** Joins what stands at the ranges of an axis, which follow each other and cover it. */
export function concat(values: readonly Value[], axis: number, ranges: readonly Range[], length: Dim): Value {
  if (values.length === 1) return values[0]!
  expectShape(
    values.every((value, index) => value.shape[axis] === ranges[index]?.length),
    'concat',
    ...values,
  )
  const operation: Operation = {
    name: 'concat',
    emit: (builder, inputs) => builder.node('Concat', inputs, { axis }),
    gradient: (_, adjoint) => ranges.map(range => slice(adjoint, axis, range)),
  }
  return { operation, inputs: values, shape: withDim(values[0]!, axis, length) }
}

/** The sum of what stands at ranges of an axis of the given length, which the ranges cover together. */
export function addRanges(
  values: readonly Value[],
  axis: number,
  ranges: readonly Range[],
  length: Dim,
): Value {
  if (ranges.some(({ from }) => from)) {
    return values.map((value, index) => pad(value, axis, ranges[index]!, length)).reduce(add)
  }
  // All begin where the axis does, and each is at least as long as the one before: so the sum grows with them.
  let sum = values[0]!
  for (const [index, { to, length: wider }] of ranges.entries()) {
    if (index === 0) continue
    sum = add(pad(sum, axis, { ...ranges[index - 1]!, of: to }, wider), values[index]!)
  }
  expectShape(ranges.at(-1)!.length === length, 'sum of ranges', ...values)
  return sum
}

function optional(value: Value | undefined): Value[] {
  return value === undefined ? [] : [value]
}

function withDim({ shape }: Value, axis: number, dim: Dim): Dim[] {
  return shape.map((own, index) => (index === axis ? dim : own))
}
