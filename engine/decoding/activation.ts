/**
 * Activations of the decoding graph and the nodes that both its layers and its ends use. Products and norms take
 * [N, width], attention [B, heads, S, E]: activations know how they lie, and are turned only where the next operation
 * wants them otherwise.
 */
import type { ModelConfig } from '../architectures/config.ts'
import type { GateActivation } from '../architectures/layer-operations.ts'
import { GELU } from '../graph/operations/geglu.ts'
import { float } from '../onnx/attribute.ts'
import type { GraphBuilder, Value } from '../onnx/graph-builder.ts'
import { INPUT } from './names.ts'

export interface Activation {
  /** [N, width], [M, width] of the wanted tokens alone, or [B, width / E, S, E]. */
  readonly layout: 'rows' | 'wanted' | 'heads'
  readonly value: Value
  readonly width: number
}

/** onnxruntime's own operators. */
export const COM = { domain: 'com.microsoft' } as const

export function transposeNode(g: GraphBuilder, x: Value, ...perm: number[]): Value {
  return g.node('Transpose', [x], { perm })
}

/** [N, width] or [M, width] */
export function rowsOf({ layout, value }: Activation): Value {
  if (layout === 'heads') throw new Error('attention alone takes heads')
  return value
}

/** [M, width]: of the tokens whose logits are wanted. */
export function wantedOf(g: GraphBuilder, x: Activation): Activation {
  if (x.layout === 'wanted') return x
  return { ...x, layout: 'wanted', value: g.node('Gather', [rowsOf(x), INPUT.last], { axis: 0 }) }
}

/**
 * Rows [N, in] times the transpose of a weight [out, in]: [N, out]. onnxruntime packs the weight when the graph is
 * loaded, as its kernels read it.
 */
export function projectNode(
  g: GraphBuilder,
  weight: string,
  shape: readonly [out: number, inputs: number],
  rows: Value,
): Value {
  const matrix = g.external(`${weight}.packed`, 'float32', shape, weight)
  return g.node('FusedMatMul', [rows, matrix], { transB: 1 }, COM)
}

/** Root-mean-square norm over the last axis. */
export function normNode(
  g: GraphBuilder,
  { normEpsilon, normOffset }: ModelConfig,
  x: Value,
  weight: Value,
): Value {
  const shifted = normOffset === undefined ? weight : g.node('Add', [weight, g.float(normOffset)])
  const attributes = { axis: -1, epsilon: float(normEpsilon), stash_type: 1 }
  return g.node('SimplifiedLayerNormalization', [x, shifted], attributes)
}

/** cap · tanh(x / cap) */
export function softCapNode(g: GraphBuilder, x: Value, cap: number): Value {
  const t = g.node('Tanh', [g.node('Mul', [x, g.float(1 / cap)])])
  return g.node('Mul', [t, g.float(cap)])
}

/** SiLU, or GELU in its tanh form. */
export function gateNode(g: GraphBuilder, activation: GateActivation, gate: Value): Value {
  const multiply = (a: Value, b: Value) => g.node('Mul', [a, b])
  if (activation === 'silu') return multiply(gate, g.node('Sigmoid', [gate]))
  const square = multiply(multiply(gate, gate), g.float(GELU.rate * GELU.cubic))
  const argument = multiply(gate, g.node('Add', [square, g.float(GELU.rate)]))
  return multiply(gate, g.node('Sigmoid', [argument]))
}
