import { type Dim, expectShape, type Operation, type Value } from '../value.ts'

/**
 * The same elements in another shape. Symbolic lengths are not multiplied out: a target length must be a
 * number, or stand at the same axis in the source, or be the only one that is neither.
 */
export function reshape(value: Value, shape: readonly Dim[]): Value {
  const target = shape.map((dim, axis) =>
    typeof dim === 'number' ? dim : dim === value.shape[axis] ? 0 : -1,
  )
  expectShape(target.filter(dim => dim === -1).length <= 1, `reshape to [${shape.join(', ')}]`, value)
  const operation: Operation = {
    name: 'reshape',
    cheap: true,
    emit: (builder, [source]) => builder.node('Reshape', [source!, builder.ints(target)]),
    gradient: (_, adjoint) => [reshape(adjoint, value.shape)],
  }
  return { operation, inputs: [value], shape }
}
