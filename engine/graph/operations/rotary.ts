/**
 * Rotary position embedding (Su et al., arXiv:2104.09864) in the half-split layout of Hugging Face's Llama:
 * within each head, feature i turns with feature i + headDim/2.
 */
import { expectShape, type Operation, type Value } from '../value.ts'
import { negate } from './negate.ts'

const operation: Operation = {
  name: 'rotary',
  emit: (builder, [x, cos, sin]) =>
    builder.node('RotaryEmbedding', [x!, builder.ints([0]), cos!, sin!], {}, { domain: 'com.microsoft' }),
  // A rotation's transpose is the rotation by the opposite angle.
  gradient: ({ inputs: [, cos, sin] }, adjoint) => [rotary(adjoint, cos!, negate(sin!)), null, null],
}

/** x is [B, T, heads · headDim]; cos and sin are [T, headDim / 2], row t for position t. */
export function rotary(x: Value, cos: Value, sin: Value): Value {
  expectShape(
    x.shape.length === 3 && x.shape[1] === cos.shape[0] && x.shape[1] === sin.shape[0],
    'rotary',
    x,
    cos,
    sin,
  )
  return { operation, inputs: [x, cos, sin], shape: x.shape }
}
