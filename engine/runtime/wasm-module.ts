/**
 * Just enough of a WebAssembly writer (W3C WebAssembly Core 2.0, chapter 5) for a module that holds one function
 * and the memory that it works on.
 */

export const TYPE = { i32: 0x7f, f32: 0x7d, f64: 0x7c, v128: 0x7b } as const
type Type = (typeof TYPE)[keyof typeof TYPE]

/** Opcodes of vectors stand behind a prefix. */
const vector = (code: number) => [0xfd, ...leb128(code)]

/** The instructions in use: vectors of four f32, words of four i32 in one, wide ones of two f64. */
const INSTRUCTIONS: Readonly<Record<string, readonly number[]>> = {
  loop: [0x03, 0x40],
  repeat: [0x0d, 0],
  end: [0x0b],
  'i32.less': [0x49],
  'i32.add': [0x6a],
  'i32.shift-left': [0x74],
  'i32.shift-right': [0x76],
  'f64.add': [0xa0],
  and: vector(0x4e),
  /** The first but for the bits of the second. */
  'and-not': vector(0x4f),
  xor: vector(0x51),
  'words.splat': vector(0x11),
  'words.shift-left': vector(0xab),
  'words.shift-right': vector(0xad),
  'words.add': vector(0xae),
  'words.multiply': vector(0xb5),
  /** Eight u16 of two times four words below 2¹⁶. */
  'words.narrow': vector(0x86),
  /** The words 0, 1, 2, 3. */
  'words.lanes': [...vector(0x0c), ...[0, 1, 2, 3].flatMap(lane => [lane, 0, 0, 0])],
  splat: vector(0x13),
  sqrt: vector(0xe3),
  add: vector(0xe4),
  subtract: vector(0xe5),
  multiply: vector(0xe6),
  divide: vector(0xe7),
  'words.first': [...vector(0x1b), 0],
  'words.second': [...vector(0x1b), 1],
  'wide.splat': vector(0x14),
  'wide.less': vector(0x49),
  'wide.add': vector(0xf0),
  'wide.subtract': vector(0xf1),
  'wide.multiply': vector(0xf2),
  'wide.max': vector(0xf5),
  /** Whole words, of what is between them towards 0. */
  'wide.truncate': vector(0xfc),
  /** Of the first two of four words. */
  'wide.convert': vector(0xfe),
  /** The second of one pair, then the first of another. */
  'wide.swap': [...vector(0x0d), ...[8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23]],
  'wide.first': [...vector(0x21), 0],
  'wide.second': [...vector(0x21), 1],
}

/** Those that read or write memory at an address that is known beforehand, on top of the one on the stack. */
const MEMORY: Readonly<Record<string, (address: number) => number[]>> = {
  load: address => [...vector(0x00), 2, ...leb128(address)],
  store: address => [...vector(0x0b), 2, ...leb128(address)],
  /** Four u16, as words. */
  'halves.load': address => [...vector(0x04), 1, ...leb128(address)],
  /** The first four u16 of eight. */
  'halves.store': address => [...vector(0x5b), 1, ...leb128(address), 0],
  /** One f64 twice. */
  'wide.load-once': address => [...vector(0x0a), 3, ...leb128(address)],
  /** One f64, as the second of a pair below the address. */
  'wide.load-second': address => [...vector(0x57), 3, ...leb128(address), 1],
  /** Two f32, widened. */
  'wide.load': address => [...vector(0x5d), 2, ...leb128(address), ...vector(0x5f)],
}

/**
 * The bytes of instructions in postfix notation: `x` pushes a local or a number, `=x` pops into a local, `:=x`
 * only copies there, `load@A` reads at an address.
 */
export function assemble(
  text: string,
  locals: readonly string[],
  addresses: Readonly<Record<string, number>>,
): number[] {
  const numberOf = (name: string) => {
    const index = locals.indexOf(name)
    if (index < 0) throw new Error(`no instruction and no local: ${name}`)
    return leb128(index)
  }
  return text
    .trim()
    .split(/\s+/)
    .flatMap(token => {
      const [name, address] = token.split('@')
      if (address !== undefined) return MEMORY[name!]!(addresses[address]!)
      if (INSTRUCTIONS[token]) return INSTRUCTIONS[token]
      if (token.startsWith(':=')) return [0x22, ...numberOf(token.slice(2))]
      if (token.startsWith('=')) return [0x21, ...numberOf(token.slice(1))]
      if (/^\d+$/.test(token)) return [0x41, ...signedLeb128(Number(token))]
      return [0x20, ...numberOf(token)]
    })
}

export interface WasmFunction {
  readonly name: string
  readonly parameters: readonly Type[]
  readonly results: readonly Type[]
  /** Numbered from the parameters on: how many locals of type v128, then how many of type i32. */
  readonly vectors: number
  readonly integers: number
  readonly body: readonly number[]
}

/** The part of the WebAssembly interface that is used here; TypeScript keeps it with the browser's types. */
interface Wasm {
  readonly Module: new (bytes: Uint8Array) => object
  readonly Instance: new (module: object) => { readonly exports: Readonly<Record<string, unknown>> }
}

/** A function with `pages` of 64 KiB of memory, ready to be called. */
export function wasmKernel<F>(pages: number, definition: WasmFunction): { run: F; memory: Float32Array } {
  const { Module, Instance } = (globalThis as unknown as { WebAssembly: Wasm }).WebAssembly
  const { exports } = new Instance(new Module(wasmModule(pages, definition)))
  const { buffer } = exports.memory as { readonly buffer: ArrayBuffer }
  return { run: exports[definition.name] as F, memory: new Float32Array(buffer) }
}

function wasmModule(pages: number, definition: WasmFunction): Uint8Array {
  const { name, parameters, results, vectors, integers, body } = definition
  const code = [
    2,
    ...leb128(vectors),
    TYPE.v128,
    ...leb128(integers),
    TYPE.i32,
    ...body,
    ...INSTRUCTIONS.end!,
  ]
  return Uint8Array.from([
    ...[0x00, 0x61, 0x73, 0x6d, 1, 0, 0, 0],
    ...section(1, [
      1,
      0x60,
      ...leb128(parameters.length),
      ...parameters,
      ...leb128(results.length),
      ...results,
    ]),
    ...section(3, [1, 0]),
    ...section(5, [1, 1, ...leb128(pages), ...leb128(pages)]),
    ...section(7, [2, ...text('memory'), 2, 0, ...text(name), 0, 0]),
    ...section(10, [1, ...leb128(code.length), ...code]),
  ])
}

function section(id: number, bytes: readonly number[]): number[] {
  return [id, ...leb128(bytes.length), ...bytes]
}

function text(value: string): number[] {
  const bytes = Buffer.from(value)
  return [...leb128(bytes.length), ...bytes]
}

/** Of a number from 0 to 2³² − 1. */
function leb128(value: number): number[] {
  const bytes: number[] = []
  let rest = value
  for (; rest > 0x7f; rest >>>= 7) bytes.push((rest & 0x7f) | 0x80)
  return [...bytes, rest]
}

/** Of a number from 0 to 2³¹ − 1: the last byte's second bit is the sign. */
function signedLeb128(value: number): number[] {
  const bytes: number[] = []
  let rest = value
  for (; rest > 0x3f; rest >>>= 7) bytes.push((rest & 0x7f) | 0x80)
  return [...bytes, rest]
}
