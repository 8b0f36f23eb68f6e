/** Repeats a value along the axes where it is shorter than another. */
import { expectShape, type Operation, sameShape, type Value } from '../value.ts'
import { broadcast, sumTo } from './sum-to.ts'

const operation: Operation = {
  name: 'expandLike',
  emit: (builder, [value, like]) => builder.node('Expand', [value!, builder.node('Shape', [like!])]),
  gradient: ({ inputs: [value] }, adjoint) => [sumTo(adjoint, value!.shape), null],
}

export function expandLike(value: Value, like: Value): Value {
  if (sameShape(value, like)) return value
  const shape = broadcast('expandLike', value, like)
  expectShape(
    shape.length === like.shape.length && shape.every((dim, axis) => dim === like.shape[axis]),
    'expandLike',
    value,
    like,
  )
  return { operation, inputs: [value, like], shape }
}
