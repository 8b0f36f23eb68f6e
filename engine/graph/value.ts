/**
 * The intermediate representation of differentiable computations: an acyclic graph of values. A value knows
 * the operation that makes it, that operation's inputs, and its shape; it holds no numbers. The same values
 * are emitted as ONNX (model.ts) and differentiated (gradient.ts).
 */
import type { GraphBuilder } from '../onnx/graph-builder.ts'

/** A length, or the name of a symbolic one. Equal names are equal lengths. */
export type Dim = number | string

export interface Value {
  readonly operation: Operation
  readonly inputs: readonly Value[]
  readonly shape: readonly Dim[]
}

/** One operation a file, in operations/. An instance holds its attributes. */
export interface Operation {
  readonly name: string

  /** Cheaper to compute again than to keep in memory between forward and backward pass. */
  readonly cheap?: boolean

  /** Stands for its last input; the others are there for gradients alone. */
  readonly alias?: boolean

  /** Adds ONNX nodes that compute `value` from its inputs' names; gives the result's name. */
  emit(builder: GraphBuilder, inputs: readonly string[], value: Value): string

  /**
   * The vector-Jacobian product: from the adjoint of `value`, each input's adjoint; null where none flows.
   * Absent for operations through which nothing is differentiated.
   */
  gradient?(value: Value, adjoint: Value): readonly (Value | null)[]

  /** Where the operation can add its result onto `sum` at no cost: the value `sum + value`. */
  addOnto?(value: Value, sum: Value): Value
}

/** What has to be computed before a value is. */
export function needsOf({ operation, inputs }: Value): readonly Value[] {
  return operation.alias ? inputs.slice(-1) : inputs
}

export function sameShape(a: Value, b: Value): boolean {
  return a.shape.length === b.shape.length && a.shape.every((dim, index) => dim === b.shape[index])
}

/** For messages. */
export function describe(value: Value): string {
  return `${value.operation.name}[${value.shape.join(', ')}]`
}

/** @throws Error naming the operation and the values, when a graph is put together wrongly. */
export function expectShape(
  condition: boolean,
  operation: string,
  ...values: readonly Value[]
): asserts condition {
  if (!condition) throw new Error(`${operation} cannot take ${values.map(describe).join(' and ')}`)
}
