import { float } from '../../onnx/attribute.ts'
import { type Dim, expectShape, type Operation, type Value } from '../value.ts'

export interface MatmulOptions {
  readonly transposeA?: boolean
  readonly transposeB?: boolean
  /** Factor of the product. */
  readonly scale?: number
}

/** scale · op(A) · op(B) for each leading index, op being transposition of the last two axes or nothing. */
export function matmul(a: Value, b: Value, options: MatmulOptions = {}): Value {
  const { transposeA = false, transposeB = false, scale = 1 } = options
  const [rows, inner] = matrix(a, transposeA)
  const [otherInner, columns] = matrix(b, transposeB)
  const batch = a.shape.slice(0, -2)
  const sameBatch = batch.length === b.shape.length - 2 && batch.every((dim, axis) => dim === b.shape[axis])
  expectShape(inner === otherInner && sameBatch, 'matmul', a, b)
  const operation: Operation = {
    name: 'matmul',
    emit(builder, inputs) {
      if (!transposeA && !transposeB && scale === 1) return builder.node('MatMul', inputs)
      const attributes = { transA: transposeA, transB: transposeB, alpha: float(scale) }
      return builder.node('FusedMatMul', inputs, attributes, { domain: 'com.microsoft' })
    },
    // d op(A) = dY · op(B)ᵀ and d op(B) = op(A)ᵀ · dY, transposed back where op transposes.
    gradient: (_, adjoint) => [
      transposeA
        ? matmul(b, adjoint, { transposeA: transposeB, transposeB: true, scale })
        : matmul(adjoint, b, { transposeB: !transposeB, scale }),
      transposeB
        ? matmul(adjoint, a, { transposeA: true, transposeB: transposeA, scale })
        : matmul(a, adjoint, { transposeA: !transposeA, scale }),
    ],
  }
  return { operation, inputs: [a, b], shape: [...batch, rows, columns] }
}

function matrix(value: Value, transposed: boolean): [Dim, Dim] {
  expectShape(value.shape.length >= 2, 'matmul', value)
  const [rows, columns] = value.shape.slice(-2) as [Dim, Dim]
  return transposed ? [columns, rows] : [rows, columns]
}
