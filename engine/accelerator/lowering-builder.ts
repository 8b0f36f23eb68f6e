/**
 * A graph builder for devices that lack some operators: it puts others in their place. What it has to know of values
 * beyond that is how many axes they have.
 */
import type { Attribute, Float } from '../onnx/attribute.ts'
import type { ElementType } from '../onnx/element-type.ts'
import {
  GraphBuilder,
  type NodeOptions,
  type Shape,
  siblingOutput,
  type Value,
} from '../onnx/graph-builder.ts'

type Attributes = Record<string, Attribute>
type NodesOptions = Omit<NodeOptions, 'outputs'> & { readonly outputs: readonly string[] | number }

export class LoweringBuilder extends GraphBuilder {
  /** Axes of each value. */
  readonly #ranks = new Map<Value, number>()
  /** Number of elements of what gives axes or a shape. */
  readonly #lengths = new Map<Value, number>()
  /** Second outputs of norms, which are made once something reads them. */
  readonly #pending = new Map<Value, () => void>()

  override input(name: string, type: ElementType, shape: Shape): Value {
    this.#ranks.set(name, shape.length)
    if (shape.length === 1 && typeof shape[0] === 'number') this.#lengths.set(name, shape[0])
    return super.input(name, type, shape)
  }

  override initializer(name: string, type: ElementType, dims: readonly number[], data: Uint8Array): Value {
    this.#ranks.set(name, dims.length)
    if (dims.length === 1) this.#lengths.set(name, dims[0]!)
    return super.initializer(name, type, dims, data)
  }

  override node(
    op: string,
    inputs: readonly Value[],
    attributes: Attributes = {},
    options: NodeOptions = {},
  ): Value {
    // Before the node's name is chosen, which must not be one of theirs.
    this.#make(inputs)
    return super.node(op, inputs, attributes, options)
  }

  override nodes(
    op: string,
    inputs: readonly Value[],
    attributes: Attributes,
    options: NodesOptions,
  ): readonly Value[] {
    this.#make(inputs)
    const lowered = this.#lower(op, inputs, attributes, options)
    if (lowered) return lowered
    const outputs = super.nodes(op, inputs, attributes, options)
    const rank = this.#rankOf(op, inputs, attributes)
    for (const output of outputs) this.#ranks.set(output, rank)
    if (op === 'Shape') this.#lengths.set(outputs[0]!, this.#rank(inputs[0]!))
    return outputs
  }

  /** What is pending among the values. */
  #make(values: readonly Value[]): void {
    for (const value of values) {
      const make = this.#pending.get(value)
      this.#pending.delete(value)
      make?.()
    }
  }

  #lower(
    op: string,
    inputs: readonly Value[],
    attributes: Attributes,
    { outputs }: NodesOptions,
  ): readonly Value[] | undefined {
    if (op === 'FusedMatMul') return [this.#fusedMatMul(inputs, attributes, outputs)]
    if (op === 'LogSoftmax') return [this.#logSoftmax(inputs[0]!, outputs)]
    if (op === 'SimplifiedLayerNormalization' && outputs === 2) return this.#norm(inputs, attributes)
    return undefined
  }

  /** alpha · op(A) · op(B): of matrices as Gemm, which transposes as it reads. */
  #fusedMatMul(inputs: readonly Value[], attributes: Attributes, outputs: NodesOptions['outputs']): Value {
    const [a, b] = inputs as [Value, Value]
    const alpha = (attributes.alpha as Float | undefined)?.float ?? 1
    const named = typeof outputs === 'number' ? {} : { outputs }
    const { transA = 0, transB = 0 } = attributes
    if (this.#rank(a) === 2 && this.#rank(b) === 2) {
      return this.node('Gemm', [a, b], { transA, transB, alpha: { float: alpha } }, named)
    }
    const turned = [transA ? this.#turn(a) : a, transB ? this.#turn(b) : b]
    if (alpha === 1) return this.node('MatMul', turned, {}, named)
    return this.node('Mul', [this.node('MatMul', turned), this.float(alpha)], {}, named)
  }

  /**
   * The norm alone. Its second output, 1 / √(mean(x²) + epsilon), is computed: onnxruntime 1.30 gives the mean of x there
   * with WebGPU.
   */
  #norm(inputs: readonly Value[], attributes: Attributes): readonly Value[] {
    const [x] = inputs as [Value]
    const normed = this.node('SimplifiedLayerNormalization', inputs, attributes)
    const inverse = siblingOutput(normed, 1)
    this.#pending.set(inverse, () => {
      const { float: epsilon } = attributes.epsilon as Float
      const mean = this.node('ReduceMean', [this.node('Mul', [x, x]), this.ints([-1])], { keepdims: 1 })
      const root = this.node('Sqrt', [this.node('Add', [mean, this.float(epsilon)])])
      this.node('Reciprocal', [root], {}, { outputs: [inverse] })
    })
    return [normed, inverse]
  }

  /** Exchanges the last two axes. */
  #turn(value: Value): Value {
    const rank = this.#rank(value)
    const perm = Array.from({ length: rank }, (_, axis) =>
      axis < rank - 2 ? axis : rank - 1 - (axis - (rank - 2)),
    )
    return this.node('Transpose', [value], { perm })
  }

  /** Over the last axis. */
  #logSoftmax(x: Value, outputs: NodesOptions['outputs']): Value {
    const reduce = (op: string, value: Value) => this.node(op, [value, this.ints([-1])], { keepdims: 1 })
    const shifted = this.node('Sub', [x, reduce('ReduceMax', x)])
    const log = this.node('Log', [reduce('ReduceSum', this.node('Exp', [shifted]))])
    return this.node('Sub', [shifted, log], {}, typeof outputs === 'number' ? {} : { outputs })
  }

  #rankOf(op: string, inputs: readonly Value[], attributes: Attributes): number {
    const first = this.#rank(inputs[0]!)
    switch (op) {
      case 'Gemm':
        return 2
      case 'Shape':
        return 1
      case 'Reshape':
      case 'Expand':
        return this.#lengths.get(inputs[1]!) ?? 0
      case 'Gather':
        return first + this.#rank(inputs[1]!) - 1
      case 'Unsqueeze':
        return first + (this.#lengths.get(inputs[1]!) ?? 0)
      case 'ReduceSum':
      case 'ReduceSumSquare':
      case 'ReduceMax':
      case 'ReduceMean': {
        if (attributes.keepdims !== false && attributes.keepdims !== 0) return first
        return inputs[1] === undefined ? 0 : first - (this.#lengths.get(inputs[1]) ?? 0)
      }
      case 'Transpose':
      case 'GatherElements':
      case 'ScatterElements':
      case 'ScatterND':
      case 'RotaryEmbedding':
      case 'Slice':
      case 'Pad':
        return first
      default:
        // By elements, with broadcasting; products of batches of matrices too.
        return Math.max(...inputs.filter(input => input !== '').map(input => this.#rank(input)))
    }
  }

  #rank(value: Value): number {
    const rank = this.#ranks.get(value)
    if (rank === undefined) throw new Error(`graph ${this.name}: the axes of ${value} are not known`)
    return rank
  }
}
