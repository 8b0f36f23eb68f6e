/** Emits values as an ONNX model: the outputs, and whatever they need. */
import { GraphBuilder } from '../onnx/graph-builder.ts'
import { markWritten } from '../onnx/written-marker.ts'
import { needsOf, type Value } from './value.ts'

/**
 * @param outputs f32 values by the names they get in the model
 * @param given values that are fed instead of computed, by the names of the inputs that take them
 * @param outputsGiven whoever runs the graph gives the tensors that take the outputs (onnx/written-marker.ts)
 * @param builder makes the model
 * @returns the model's bytes; its other inputs are the input values that the outputs depend on
 */
export function buildModel(
  name: string,
  outputs: Readonly<Record<string, Value>>,
  given: Readonly<Record<string, Value>> = {},
  outputsGiven = false,
  builder = new GraphBuilder(name),
): Uint8Array {
  if (outputsGiven) markWritten(builder)
  const names = new Map<Value, string>()
  for (const [input, value] of Object.entries(given)) {
    names.set(value, builder.input(input, 'float32', value.shape))
  }
  const emit = (value: Value): string => {
    const known = names.get(value)
    if (known !== undefined) return known
    const made = value.operation.emit(builder, needsOf(value).map(emit), value)
    names.set(value, made)
    return made
  }
  for (const [output, value] of Object.entries(outputs))
    builder.output(emit(value), 'float32', value.shape, output)
  return builder.build()
}
