/**
 * What decoder layers are made of. An architecture writes its layer once, against these operations; what they do
 * with it is up to who gives them: build the differentiable graph (learner/layer-operations.ts), build the graph
 * that decodes against a cache (decoding/layer-operations.ts, accelerator/decode-graphs.ts), or tell the parameters
 * (layer-parameters.ts).
 *
 * X stands for activations: a row of features for each token. Names are those of parameters behind
 * `model.layers.N.`, without `.weight` and `.bias`.
 */

/** How a feed-forward layer activates its gate: a · σ(a), or GELU in its tanh form (arXiv:1606.08415). */
export type GateActivation = 'silu' | 'gelu-tanh'

export interface LayerOperations<X> {
  /** Root-mean-square norm over all features; `NAME.weight` [features]. */
  norm(x: X, name: string): X
  /** x · Wᵀ, or x · Wᵀ + b: `NAME.weight` [width, features], `NAME.bias` [width]. */
  project(x: X, name: string, width: number, bias?: 'bias'): X
  /** The norm within each head; `NAME.weight` [E] is the same for all of them. */
  headNorm(x: X, name: string): X
  /** Turns each head by its token's position. */
  rotary(x: X): X
  /**
   * Attention of H query heads to K key and value heads, causal, with the scale, the soft-cap and the window that
   * the configuration gives the layer.
   */
  attention(query: X, key: X, value: X): X
  /** act(gate) · up */
  gated(activation: GateActivation, gate: X, up: X): X
  add(a: X, b: X): X
}
