/**
 * Gives a computation a gradient of its own, where that is cheaper or more exact than what the chain rule
 * gives operation by operation.
 */
import type { Operation, Value } from '../value.ts'

/**
 * @param name for messages
 * @param inputs what gradients flow to
 * @param result the computation, made of the inputs
 * @param gradient from the result's adjoint, the adjoint of each input; null where none flows
 */
export function composite(
  name: string,
  inputs: readonly Value[],
  result: Value,
  gradient: (adjoint: Value) => readonly (Value | null)[],
): Value {
  const operation: Operation = {
    name,
    // The name of the result: nothing of its own to keep.
    cheap: true,
    alias: true,
    emit: (_, names) => names.at(-1)!,
    gradient: (_, adjoint) => [...gradient(adjoint), null],
  }
  return { operation, inputs: [...inputs, result], shape: result.shape }
}
