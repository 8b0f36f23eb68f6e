import { expectShape, type Operation, type Value } from '../value.ts'

/** Axis i of the result is axis `permutation[i]` of the value. */
export function transpose(value: Value, permutation: readonly number[]): Value {
  expectShape(permutation.length === value.shape.length, `transpose(${permutation})`, value)
  const operation: Operation = {
    name: 'transpose',
    emit: (builder, [source]) => builder.node('Transpose', [source!], { perm: permutation }),
    gradient: (_, adjoint) => [
      transpose(
        adjoint,
        permutation.map((_, axis) => permutation.indexOf(axis)),
      ),
    ],
  }
  return { operation, inputs: [value], shape: permutation.map(axis => value.shape[axis]!) }
}
