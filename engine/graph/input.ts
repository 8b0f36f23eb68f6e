/** A value that is fed at each run: an activation, a weight, a mask, token ids. */
import type { ElementType } from '../onnx/element-type.ts'
import type { Dim, Operation, Value } from './value.ts'

export interface InputOperation extends Operation {
  readonly type: ElementType
}

export function input(name: string, shape: readonly Dim[], type: ElementType = 'float32'): Value {
  const operation: InputOperation = { name, type, emit: builder => builder.input(name, type, shape) }
  return { operation, inputs: [], shape }
}

/** A constant scalar. */
export function scalar(value: number): Value {
  return { operation: { name: 'scalar', emit: builder => builder.float(value) }, inputs: [], shape: [] }
}
