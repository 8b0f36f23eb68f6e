/**
 * Builds an ONNX model node by node. Values are named by strings; `node` gives the name of what it computes,
 * so that graphs read like expressions. Names that the caller does not choose are numbered in order of
 * creation: the same calls give the same bytes.
 */
import { type Attribute, encodeAttribute } from './attribute.ts'
import { type ElementType, elementTypeCode } from './element-type.ts'
import { ProtobufWriter } from './protobuf.ts'

/** A dimension is a length or the name of a symbolic length. */
export type Shape = readonly (number | string)[]

/** Name of a value of the graph; '' stands for an optional input that is left out. */
export type Value = string

export interface NodeOptions {
  /** '' is ONNX itself; onnxruntime's own operators are in 'com.microsoft'. */
  readonly domain?: string
  /** Names for the outputs. */
  readonly outputs?: readonly string[]
}

interface Node {
  readonly op: string
  readonly inputs: readonly Value[]
  readonly attributes: readonly ProtobufWriter[]
  readonly domain: string
  readonly outputs: readonly Value[]
}

/** The name of a further output of the node whose first output is `value`, where the builder named it. */
export function siblingOutput(value: Value, index: number): Value {
  return `${value}:${index}`
}

/** ONNX's standard operators, as of this version. */
const OPSET = 21
const IR_VERSION = 10
/** TensorProto.DataLocation */
const EXTERNAL = 1

export class GraphBuilder {
  readonly name: string
  readonly #nodes: Node[] = []
  readonly #inputs: ProtobufWriter[] = []
  readonly #outputs: ProtobufWriter[] = []
  readonly #initializers: ProtobufWriter[] = []
  readonly #constants = new Map<string, Value>()
  readonly #taken = new Set<string>()
  /** Values that nodes make, and may thus be called otherwise in the model. */
  readonly #made = new Set<Value>()
  readonly #renamed = new Map<Value, string>()

  constructor(name: string) {
    this.name = name
  }

  input(name: string, type: ElementType, shape: Shape): Value {
    this.#claim(name)
    this.#inputs.push(valueInfo(name, type, shape))
    return name
  }

  /**
   * Marks a value as an output. Another name renames it in the model; a value that has a name that counts (an
   * input, a constant, another output) is copied instead.
   */
  output(value: Value, type: ElementType, shape: Shape, name: string = value): Value {
    if (name !== value && this.#made.has(value)) {
      this.#claim(name)
      this.#renamed.set(value, name)
    } else if (name !== value) this.node('Identity', [value], {}, { outputs: [name] })
    this.#made.delete(value)
    this.#outputs.push(valueInfo(name, type, shape))
    return name
  }

  /** Marks a value that is a sequence of f32 tensors as an output of the given name. */
  sequenceOutput(value: Value, name: string): void {
    this.#claim(name)
    this.#renamed.set(value, name)
    this.#made.delete(value)
    const element = new ProtobufWriter().message(1, new ProtobufWriter().int(1, elementTypeCode('float32')))
    const type = new ProtobufWriter().message(4, new ProtobufWriter().message(1, element))
    this.#outputs.push(new ProtobufWriter().string(1, name).message(2, type))
  }

  /** Adds a node with one output (or whose first output alone is wanted) and gives that output's name. */
  node(
    op: string,
    inputs: readonly Value[],
    attributes: Record<string, Attribute> = {},
    options: NodeOptions = {},
  ): Value {
    return this.nodes(op, inputs, attributes, {
      ...options,
      outputs: options.outputs ?? [this.#fresh(op)],
    })[0]!
  }

  /**
   * Adds a node with several outputs and gives their names. `outputs` names them, '' leaving an optional one
   * out, or is their number.
   */
  nodes(
    op: string,
    inputs: readonly Value[],
    attributes: Record<string, Attribute>,
    options: Omit<NodeOptions, 'outputs'> & { readonly outputs: readonly string[] | number },
  ): readonly Value[] {
    for (const input of inputs) {
      if (input !== '' && !this.#taken.has(input)) {
        throw new Error(`graph ${this.name}: ${op} reads ${input}, which no earlier node or input makes`)
      }
    }
    const outputs = typeof options.outputs === 'number' ? this.#several(op, options.outputs) : options.outputs
    for (const output of outputs) {
      if (output === '') continue
      this.#claim(output)
      this.#made.add(output)
    }
    const encoded = Object.entries(attributes).map(([name, value]) => encodeAttribute(name, value))
    this.#nodes.push({ op, inputs, attributes: encoded, domain: options.domain ?? '', outputs })
    return outputs
  }

  /** A constant tensor from little-endian bytes. */
  initializer(name: string, type: ElementType, dims: readonly number[], data: Uint8Array): Value {
    this.#tensor(name, type, dims).bytes(9, data)
    return name
  }

  /**
   * A constant tensor whose little-endian bytes are given under the name of `location` when the model is loaded, so
   * that they need not be copied into its own, which end at 2 GiB.
   */
  external(name: string, type: ElementType, dims: readonly number[], location: string): Value {
    const entry = new ProtobufWriter().string(1, 'location').string(2, location)
    this.#tensor(name, type, dims).message(13, entry).int(14, EXTERNAL)
    return name
  }

  /** A small f32 constant, a scalar by default; equal constants are shared. */
  float(values: number | readonly number[], dims?: readonly number[]): Value {
    const list = typeof values === 'number' ? [values] : values
    return this.#constant(
      'float32',
      list,
      dims ?? shapeOf(values),
      new Uint8Array(Float32Array.from(list).buffer),
    )
  }

  /** A small int64 constant (a scalar, or a list such as a shape); equal constants are shared. */
  ints(values: number | readonly number[], dims?: readonly number[]): Value {
    const list = typeof values === 'number' ? [values] : values
    const data = new Uint8Array(BigInt64Array.from(list, BigInt).buffer)
    return this.#constant('int64', list, dims ?? shapeOf(values), data)
  }

  /** The model's bytes, as onnxruntime reads them. */
  build(): Uint8Array {
    const graph = new ProtobufWriter()
    for (const [index, node] of this.#nodes.entries()) graph.message(1, this.#encode(node, index))
    graph.string(2, this.name)
    for (const initializer of this.#initializers) graph.message(5, initializer)
    for (const input of this.#inputs) graph.message(11, input)
    for (const output of this.#outputs) graph.message(12, output)
    return new ProtobufWriter()
      .int(1, IR_VERSION)
      .string(2, 'grasp-stream')
      .message(7, graph)
      .message(8, new ProtobufWriter().string(1, '').int(2, OPSET))
      .message(8, new ProtobufWriter().string(1, 'com.microsoft').int(2, 1))
      .finish()
  }

  /** A NodeProto. */
  #encode({ op, inputs, attributes, domain, outputs }: Node, index: number): ProtobufWriter {
    const nameOf = (value: Value) => this.#renamed.get(value) ?? value
    const proto = new ProtobufWriter()
    for (const input of inputs) proto.string(1, nameOf(input))
    for (const output of outputs) proto.string(2, nameOf(output))
    proto.string(3, `${op}_${index}`).string(4, op)
    for (const attribute of attributes) proto.message(5, attribute)
    if (domain) proto.string(7, domain)
    return proto
  }

  /** A TensorProto of the graph that has no data yet. */
  #tensor(name: string, type: ElementType, dims: readonly number[]): ProtobufWriter {
    this.#claim(name)
    const proto = new ProtobufWriter()
    for (const dim of dims) proto.int(1, dim)
    this.#initializers.push(proto)
    return proto.int(2, elementTypeCode(type)).string(8, name)
  }

  #constant(type: ElementType, values: readonly number[], dims: readonly number[], data: Uint8Array): Value {
    const key = `${type}[${dims.join()}]:${values.map(value => (Object.is(value, -0) ? '-0' : value)).join()}`
    const known = this.#constants.get(key)
    if (known !== undefined) return known
    const name = this.initializer(this.#fresh('constant'), type, dims, data)
    this.#constants.set(key, name)
    return name
  }

  #fresh(stem: string): string {
    let number = this.#taken.size
    while (this.#taken.has(`${stem}.${number}`)) number++
    return `${stem}.${number}`
  }

  #several(op: string, count: number): Value[] {
    const first = this.#fresh(op)
    return Array.from({ length: count }, (_, index) => (index === 0 ? first : siblingOutput(first, index)))
  }

  #claim(name: string): void {
    if (this.#taken.has(name)) throw new Error(`graph ${this.name}: two values are named ${name}`)
    this.#taken.add(name)
  }
}

function shapeOf(values: number | readonly number[]): readonly number[] {
  return typeof values === 'number' ? [] : [values.length]
}

/** A ValueInfoProto. */
function valueInfo(name: string, type: ElementType, shape: Shape): ProtobufWriter {
  const dims = new ProtobufWriter()
  for (const dim of shape) {
    dims.message(
      1,
      typeof dim === 'number' ? new ProtobufWriter().int(1, dim) : new ProtobufWriter().string(2, dim),
    )
  }
  const tensor = new ProtobufWriter().int(1, elementTypeCode(type)).message(2, dims)
  return new ProtobufWriter().string(1, name).message(2, new ProtobufWriter().message(1, tensor))
}
