/** Undoes broadcasting: sums a value over the axes along which `shape` would be repeated to reach its shape. */
import { type Dim, expectShape, type Operation, type Value } from '../value.ts'
import { expandLike } from './expand-like.ts'

export function sumTo(value: Value, shape: readonly Dim[]): Value {
  const lead = value.shape.length - shape.length
  const axes: number[] = []
  for (const [index, dim] of value.shape.entries()) {
    const target = index < lead ? undefined : shape[index - lead]
    if (target !== dim) {
      expectShape(target === undefined || target === 1, `sum to [${shape.join(', ')}]`, value)
      axes.push(index)
    }
  }
  if (axes.length === 0) return value
  const operation: Operation = {
    name: 'sum',
    emit(builder, [source]) {
      const kept = builder.node('ReduceSum', [source!, builder.ints(axes)], { keepdims: true })
      if (lead === 0) return kept
      return builder.node('Squeeze', [kept, builder.ints(axes.filter(axis => axis < lead))])
    },
    gradient: (_, adjoint) => [expandLike(adjoint, value)],
  }
  return { operation, inputs: [value], shape }
}

/** The shape of an elementwise operation's result. */
export function broadcast(name: string, a: Value, b: Value): readonly Dim[] {
  const [long, short] = a.shape.length >= b.shape.length ? [a, b] : [b, a]
  const lead = long.shape.length - short.shape.length
  return long.shape.map((dim, index) => {
    const other = index < lead ? 1 : short.shape[index - lead]!
    expectShape(dim === other || dim === 1 || other === 1, name, a, b)
    return dim === 1 ? other : dim
  })
}
