/**
 * Reads and writes safetensors files as f32 tensors on the CPU. Tensors come and go in bounded pieces: beside a
 * tensor itself only a few megabytes are held.
 */
import { type FileHandle, open } from 'node:fs/promises'
import { Tensor } from 'onnxruntime-node'
import { describeError, GraspError } from '../../errors/grasp-error.ts'
import { bytesOf } from '../runtime/bytes-of.ts'
import { narrowBf16, widenBf16, widenF16 } from './half.ts'
import { HashedFile } from './hashed-file.ts'
import { headerLength, parseHeader, type SafetensorsHeader, type TensorEntry } from './safetensors-header.ts'
import type { Weights } from './weights.ts'

/** Most bytes of one read call: systems cut off larger ones. */
const READ = 64 * 1024 * 1024
/** 16-bit elements converted at once. */
const HALVES = 1024 * 1024

export interface WriteOptions {
  readonly dtype: 'f32' | 'bf16'
  readonly metadata?: Readonly<Record<string, string>>
  /** Flushed to the disk; true by default. */
  readonly durable?: boolean
}

/** A file that is open for reading, its header checked against its size. */
export class SafetensorsFile {
  readonly path: string
  readonly header: SafetensorsHeader
  readonly #file: FileHandle

  private constructor(path: string, file: FileHandle, header: SafetensorsHeader) {
    this.path = path
    this.#file = file
    this.header = header
  }

  /** @throws GraspError MODEL_INVALID when the file cannot be opened or its header is wrong. */
  static async open(path: string): Promise<SafetensorsFile> {
    let file: FileHandle
    try {
      file = await open(path, 'r')
    } catch (cause) {
      throw new GraspError('MODEL_INVALID', `${path} cannot be opened: ${describeError(cause)}`, { cause })
    }
    try {
      return new SafetensorsFile(path, file, await readHeader(path, file))
    } catch (error) {
      await file.close()
      throw error
    }
  }

  /** @throws GraspError MODEL_UNSUPPORTED when the tensor is none of F32, F16 and BF16. */
  checkReadable(name: string): void {
    const { dtype } = this.#entry(name)
    if (dtype === 'F32' || dtype === 'F16' || dtype === 'BF16') return
    throw new GraspError(
      'MODEL_UNSUPPORTED',
      `${this.path}: ${name} has dtype ${dtype}; supported are F32, F16 and BF16. Convert the model first.`,
    )
  }

  /**
   * One tensor, widened to f32.
   * @throws GraspError MODEL_INVALID when the file was cut off meanwhile, MODEL_UNSUPPORTED on another dtype.
   */
  async read(name: string): Promise<Tensor> {
    this.checkReadable(name)
    const { dtype, shape, start, end } = this.#entry(name)
    if (dtype === 'F32') {
      const data = new Float32Array((end - start) / 4)
      await readAll(this.path, this.#file, bytesOf(data), start)
      return new Tensor('float32', data, shape)
    }
    const widen = dtype === 'F16' ? widenF16 : widenBf16
    const data = new Float32Array((end - start) / 2)
    const halves = new Uint16Array(Math.min(HALVES, data.length))
    for (let at = 0; at < data.length; at += HALVES) {
      const piece = halves.subarray(0, data.length - at)
      await readAll(this.path, this.#file, bytesOf(piece), start + 2 * at)
      widen(piece, data.subarray(at, at + piece.length))
    }
    return new Tensor('float32', data, shape)
  }

  close(): Promise<void> {
    return this.#file.close()
  }

  #entry(name: string): TensorEntry {
    const entry = this.header.tensors.get(name)
    if (entry) return entry
    throw new GraspError('MODEL_INVALID', `${this.path} has no tensor ${name}`)
  }
}

/** All tensors of a file, widened to f32. @throws GraspError MODEL_INVALID, MODEL_UNSUPPORTED as `SafetensorsFile`. */
export async function readSafetensors(path: string): Promise<Map<string, Tensor>> {
  const file = await SafetensorsFile.open(path)
  try {
    const tensors = new Map<string, Tensor>()
    for (const name of file.header.tensors.keys()) tensors.set(name, await file.read(name))
    return tensors
  } finally {
    await file.close()
  }
}

/**
 * Writes tensors in the order of their names: the same weights give the same bytes.
 * @returns sha256 (hex) of the file.
 */
export async function writeSafetensors(
  path: string,
  weights: Weights,
  options: WriteOptions,
): Promise<string> {
  const names = [...weights.keys()].sort()
  const file = await HashedFile.create(path)
  try {
    for (const part of headerOf(names, weights, options)) await file.write(part)
    for (const name of names) {
      const data = weights.get(name)!.data as Float32Array | Uint16Array
      if (options.dtype === 'f32' || data instanceof Uint16Array) await file.write(bytesOf(data))
      else await writeBf16(file, data)
    }
    return await file.finish(options.durable ?? true)
  } finally {
    await file.close()
  }
}

/** The bits of bf16 numbers, which a tensor of the type uint16 holds, are written as they are. */
function storedDtype(tensor: Tensor, dtype: WriteOptions['dtype']): WriteOptions['dtype'] {
  return tensor.type === 'uint16' ? 'bf16' : dtype
}

/** Bytes that the tensor's values take in a file. */
export function storedBytes(tensor: Tensor, dtype: WriteOptions['dtype']): number {
  return tensor.size * (storedDtype(tensor, dtype) === 'f32' ? 4 : 2)
}

async function writeBf16(file: HashedFile, data: Float32Array): Promise<void> {
  const halves = new Uint16Array(Math.min(HALVES, data.length))
  for (let at = 0; at < data.length; at += HALVES) {
    const piece = data.subarray(at, at + HALVES)
    narrowBf16(piece, halves)
    await file.write(bytesOf(halves.subarray(0, piece.length)))
  }
}

/** Length and JSON. */
function headerOf(names: readonly string[], weights: Weights, options: WriteOptions): Uint8Array[] {
  const header: Record<string, unknown> = {}
  if (options.metadata) header.__metadata__ = options.metadata
  let position = 0
  for (const name of names) {
    const tensor = weights.get(name)!
    const end = position + storedBytes(tensor, options.dtype)
    const dtype = storedDtype(tensor, options.dtype).toUpperCase()
    header[name] = { dtype, shape: tensor.dims, data_offsets: [position, end] }
    position = end
  }
  const json = JSON.stringify(header)
  // The data starts on a multiple of 8, so that readers can map it; the padding is spaces, by the format.
  const padded = new TextEncoder().encode(json + ' '.repeat(-Buffer.byteLength(json) & 7))
  const length = new Uint8Array(8)
  new DataView(length.buffer).setBigUint64(0, BigInt(padded.length), true)
  return [length, padded]
}

async function readHeader(path: string, file: FileHandle): Promise<SafetensorsHeader> {
  const { size } = await file.stat()
  const first = new Uint8Array(Math.min(8, size))
  await readAll(path, file, first, 0)
  const json = new Uint8Array(headerLength(path, first, size))
  await readAll(path, file, json, 8)
  return parseHeader(path, json, size)
}

async function readAll(path: string, file: FileHandle, target: Uint8Array, position: number): Promise<void> {
  let done = 0
  while (done < target.length) {
    const length = Math.min(READ, target.length - done)
    const { bytesRead } = await file.read(target, done, length, position + done).catch((cause: unknown) => {
      throw new GraspError('MODEL_INVALID', `${path} cannot be read: ${describeError(cause)}`, { cause })
    })
    if (bytesRead === 0) throw new GraspError('MODEL_INVALID', `${path} was cut off while it was read`)
    done += bytesRead
  }
}
