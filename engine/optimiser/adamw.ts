/**
 * AdamW (Loshchilov & Hutter, arXiv:1711.05101), in the order of operations of torch.optim.AdamW:
 *
 *   w ← w · (1 − rate · decay)
 *   m ← β₁ m + (1 − β₁) g,  v ← β₂ v + (1 − β₂) g²
 *   w ← w − rate / (1 − β₁ᵗ) · m / (√v / √(1 − β₂ᵗ) + ε)
 */
import { Tensor } from 'onnxruntime-node'
import type { OptimiserDtype, UpdateOptions } from '../port.ts'
import type { Weights } from '../weights/weights.ts'
import { AdamwKernel, type Moments } from './adamw-kernel.ts'
import { roundingKey } from './stochastic-rounding.ts'

/** Owned by the optimiser and written in place. */
export interface OptimiserState {
  /** Steps taken. */
  steps: number
  /** First and second moments by parameter name, of the parameter's shape: f32, or the bits of bf16 as uint16. */
  readonly m: Map<string, Tensor>
  readonly v: Map<string, Tensor>
}

export function initialState(weights: Weights, dtype: OptimiserDtype = 'f32'): OptimiserState {
  const zeros = () =>
    new Map(
      [...weights].map(([name, { dims, size }]) => [
        name,
        dtype === 'f32'
          ? new Tensor('float32', new Float32Array(size), dims)
          : new Tensor('uint16', new Uint16Array(size), dims),
      ]),
    )
  return { steps: 0, m: zeros(), v: zeros() }
}

/** Norms and biases, the one-dimensional parameters, are not decayed. */
function decays(weight: Tensor): boolean {
  return weight.dims.length > 1
}

const kernel = new AdamwKernel()

/**
 * One step.
 * @param gradients by parameter name, only read
 * @param scale factor of the gradients (mean over responses, clipping)
 * @param made told each new weight, in the order of their names, before the next is computed
 * @param into where a new weight goes, which may be the array of the old one; a fresh array where undefined
 * @returns new weights; `state` is advanced in place
 */
export function adamw(
  weights: Weights,
  gradients: (name: string) => Float32Array,
  scale: number,
  state: OptimiserState,
  { learningRate, betas: [beta1, beta2], epsilon, weightDecay }: Omit<UpdateOptions, 'responses' | 'clip'>,
  made: (name: string, weight: Tensor) => void = () => {},
  into: (name: string) => Float32Array | undefined = () => undefined,
): Weights {
  state.steps++
  const rate = learningRate / (1 - beta1 ** state.steps)
  const correction = 1 / Math.sqrt(1 - beta2 ** state.steps)
  const updated = new Map(weights)
  for (const name of [...weights.keys()].sort()) {
    const weight = weights.get(name)!
    const w = weight.data as Float32Array
    const m = state.m.get(name)!.data as Moments
    const v = state.v.get(name)!.data as Moments
    const shrink = decays(weight) ? 1 - learningRate * weightDecay : 1
    const next = into(name) ?? new Float32Array(w.length)
    const factors = { scale, beta1, beta2, rate, correction, epsilon, shrink }
    const key = m instanceof Uint16Array ? roundingKey(name, state.steps) : 0
    kernel.step(w, gradients(name), m, v, next, factors, key)
    const tensor = new Tensor('float32', next, weight.dims)
    updated.set(name, tensor)
    made(name, tensor)
  }
  return updated
}
