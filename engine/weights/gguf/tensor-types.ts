/** How GGUF stores the values of a tensor, by the format's number of the type. */
import {
  type Dequantise,
  fromBf16,
  fromF16,
  fromF32,
  fromQ4_0,
  fromQ4_1,
  fromQ4_K,
  fromQ5_0,
  fromQ5_1,
  fromQ5_K,
  fromQ6_K,
  fromQ8_0,
} from './dequantise.ts'

export interface TensorType {
  readonly name: string
  /** Values of a block. */
  readonly block: number
  /** Bytes of a block. */
  readonly bytes: number
  readonly dequantise: Dequantise
}

export const TENSOR_TYPES: ReadonlyMap<number, TensorType> = new Map([
  [0, { name: 'F32', block: 1, bytes: 4, dequantise: fromF32 }],
  [1, { name: 'F16', block: 1, bytes: 2, dequantise: fromF16 }],
  [30, { name: 'BF16', block: 1, bytes: 2, dequantise: fromBf16 }],
  [8, { name: 'Q8_0', block: 32, bytes: 34, dequantise: fromQ8_0 }],
  [2, { name: 'Q4_0', block: 32, bytes: 18, dequantise: fromQ4_0 }],
  [3, { name: 'Q4_1', block: 32, bytes: 20, dequantise: fromQ4_1 }],
  [6, { name: 'Q5_0', block: 32, bytes: 22, dequantise: fromQ5_0 }],
  [7, { name: 'Q5_1', block: 32, bytes: 24, dequantise: fromQ5_1 }],
  [12, { name: 'Q4_K', block: 256, bytes: 144, dequantise: fromQ4_K }],
  [13, { name: 'Q5_K', block: 256, bytes: 176, dequantise: fromQ5_K }],
  [14, { name: 'Q6_K', block: 256, bytes: 210, dequantise: fromQ6_K }],
])

/** Types that the format knows and this reader does not, for errors. */
const OTHERS: Readonly<Record<number, string>> = {
  ...{
    9: 'Q8_1',
    10: 'Q2_K',
    11: 'Q3_K',
    15: 'Q8_K',
    16: 'IQ2_XXS',
    17: 'IQ2_XS',
    18: 'IQ3_XXS',
    19: 'IQ1_S',
  },
  ...{
    20: 'IQ4_NL',
    21: 'IQ3_S',
    22: 'IQ2_S',
    23: 'IQ4_XS',
    24: 'I8',
    25: 'I16',
    26: 'I32',
    27: 'I64',
    28: 'F64',
  },
  ...{ 29: 'IQ1_M', 34: 'TQ1_0', 35: 'TQ2_0', 39: 'MXFP4', 40: 'NVFP4' },
}

/** The name of a type that is not read, or undefined where the format knows none of that number. */
export function unreadTypeName(type: number): string | undefined {
  return OTHERS[type]
}
