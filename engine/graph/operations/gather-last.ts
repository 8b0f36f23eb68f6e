/** Picking entries along the last axis, and adding to picked entries. */
import { expectShape, type Operation, type Value } from '../value.ts'

const pick: Operation = {
  name: 'gatherLast',
  emit: (builder, inputs) => builder.node('GatherElements', inputs, { axis: -1 }),
}

/** values [N, V] at ids [N, k] (int64): [N, k]. Has no gradient of its own: its users know cheaper ones. */
export function gatherLast(values: Value, ids: Value): Value {
  expectShape(values.shape.length === 2 && ids.shape.length === 2, 'gatherLast', values, ids)
  return { operation: pick, inputs: [values, ids], shape: [values.shape[0]!, ids.shape[1]!] }
}

const addTo: Operation = {
  name: 'addAt',
  emit: (builder, inputs) => builder.node('ScatterElements', inputs, { axis: -1, reduction: 'add' }),
}

/** values [N, V] with updates [N, k] added at ids [N, k]. */
export function addAt(values: Value, ids: Value, updates: Value): Value {
  expectShape(values.shape.length === 2 && ids.shape.length === 2, 'addAt', values, ids, updates)
  return { operation: addTo, inputs: [values, ids, updates], shape: values.shape }
}
