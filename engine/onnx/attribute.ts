/**
 * Attribute values of a node. A plain number is an integer (booleans become 0 or 1), an array is a list of
 * integers; `float(x)` marks a single, since 1.0 and 1 are the same number in JavaScript but not in ONNX.
 */
import { ProtobufWriter } from './protobuf.ts'

export type Attribute = number | boolean | string | readonly number[] | Float

export interface Float {
  readonly float: number
}

export function float(value: number): Float {
  return { float: value }
}

/** An AttributeProto. */
export function encodeAttribute(name: string, value: Attribute): ProtobufWriter {
  const proto = new ProtobufWriter().string(1, name)
  if (typeof value === 'string') return proto.string(4, value).int(20, 3)
  if (typeof value === 'number' || typeof value === 'boolean')
    return proto.int(3, integer(name, Number(value))).int(20, 2)
  if ('float' in value) return proto.float(2, value.float).int(20, 1)
  for (const item of value) proto.int(8, integer(name, item))
  return proto.int(20, 7)
}

function integer(name: string, value: number): number {
  if (Number.isSafeInteger(value)) return value
  throw new RangeError(
    `ONNX attribute ${name} is ${value}; integers only, write float(${value}) for a single`,
  )
}
