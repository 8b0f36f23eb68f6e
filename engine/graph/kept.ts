/** What a backward pass needs of the forward pass. */
import { needsOf, type Value } from './value.ts'

/**
 * The forward values that the backward values cannot do without: kept, they spare the backward pass everything
 * but what is cheap to compute again. Inputs of the graph are not among them.
 */
export function keptValues(forward: Value, backward: readonly Value[]): Value[] {
  const ahead = new Set<Value>()
  const collect = (value: Value): void => {
    if (ahead.has(value)) return
    ahead.add(value)
    for (const input of needsOf(value)) collect(input)
  }
  collect(forward)
  const kept = new Set<Value>()
  const visited = new Set<Value>()
  const visit = (value: Value): void => {
    if (visited.has(value)) return
    visited.add(value)
    if (ahead.has(value) && value.inputs.length > 0 && !value.operation.cheap) kept.add(value)
    else for (const input of needsOf(value)) visit(input)
  }
  for (const value of backward) visit(value)
  return [...kept]
}
