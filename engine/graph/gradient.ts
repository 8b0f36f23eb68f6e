/**
 * Reverse-mode differentiation: from the adjoint of an output (the gradient of some loss at it), the adjoints
 * of values it was computed from, as values of the same graph.
 */
import { add } from './operations/add.ts'
import { describe, sameShape, type Value } from './value.ts'

export interface GradientOptions {
  /** Values to add a gradient onto, for example a running sum over microbatches. */
  readonly onto?: ReadonlyMap<Value, Value>
}

/**
 * @param adjoint gradient at `output`, of its shape
 * @returns the gradients at `wrt`, in order
 * @throws Error when `output` does not depend on one of them, or an operation between has no gradient
 */
export function gradient(
  output: Value,
  adjoint: Value,
  wrt: readonly Value[],
  options: GradientOptions = {},
): Value[] {
  if (!sameShape(output, adjoint)) throw new Error(`adjoint ${describe(adjoint)} of ${describe(output)}`)
  const adjoints = new Map<Value, Value>(options.onto)
  accumulate(adjoints, output, adjoint)
  for (const value of dependents(output, new Set(wrt)).reverse()) {
    const own = adjoints.get(value)
    if (own === undefined || value.inputs.length === 0) continue
    if (!value.operation.gradient) throw new Error(`${describe(value)} has no gradient`)
    const flows = value.operation.gradient(value, own)
    for (const [index, flow] of flows.entries()) {
      if (flow !== null) accumulate(adjoints, value.inputs[index]!, flow)
    }
  }
  return wrt.map(value => {
    const own = adjoints.get(value)
    if (own === undefined || own === options.onto?.get(value)) {
      throw new Error(`${describe(output)} does not depend on ${describe(value)}`)
    }
    return own
  })
}

function accumulate(adjoints: Map<Value, Value>, value: Value, flow: Value): void {
  if (!sameShape(value, flow)) throw new Error(`adjoint ${describe(flow)} of ${describe(value)}`)
  const sum = adjoints.get(value)
  if (sum === undefined) adjoints.set(value, flow)
  else adjoints.set(value, flow.operation.addOnto?.(flow, sum) ?? add(sum, flow))
}

/** The values on paths from `wrt` to the output, inputs before what is made of them. */
function dependents(output: Value, wrt: ReadonlySet<Value>): Value[] {
  const order: Value[] = []
  const depends = new Map<Value, boolean>()
  const visit = (value: Value): boolean => {
    const known = depends.get(value)
    if (known !== undefined) return known
    let found = wrt.has(value)
    for (const dependency of value.inputs) found = visit(dependency) || found
    depends.set(value, found)
    if (found) order.push(value)
    return found
  }
  visit(output)
  return order
}
