/** Element types of ONNX tensors, by the names that onnxruntime uses, with their codes in TensorProto.DataType. */
const CODES = {
  float32: 1,
  uint8: 2,
  int8: 3,
  int32: 6,
  int64: 7,
  bool: 9,
  float16: 10,
  uint32: 12,
  bfloat16: 16,
} as const

export type ElementType = keyof typeof CODES

export function elementTypeCode(type: ElementType): number {
  return CODES[type]
}
