/** Reads and writes safetensors files as f32 tensors on the CPU. */
import { createHash } from 'node:crypto'
import { type FileHandle, open } from 'node:fs/promises'
import { Tensor } from 'onnxruntime-node'
import { describeError, GraspError } from '../../errors/grasp-error.ts'
import { narrowBf16, widenBf16, widenF16 } from './half.ts'
import { headerLength, parseHeader, type SafetensorsHeader, type TensorEntry } from './safetensors-header.ts'
import type { Weights } from './weights.ts'

/** One write call's size: a whole large tensor in one call may be written short. */
const CHUNK = 64 * 1024 * 1024

export interface WriteOptions {
  readonly dtype: 'f32' | 'bf16'
  readonly metadata?: Readonly<Record<string, string>>
}

/** @throws GraspError MODEL_INVALID when the file cannot be read or its header is wrong. */
export async function readSafetensorsHeader(path: string): Promise<SafetensorsHeader> {
  return withFile(path, file => readHeader(path, file))
}

/**
 * All tensors of a file, widened to f32.
 * @throws GraspError MODEL_INVALID when the file is damaged, MODEL_UNSUPPORTED on integer or quantised tensors.
 */
export async function readSafetensors(path: string): Promise<Map<string, Tensor>> {
  return withFile(path, async file => {
    const { tensors } = await readHeader(path, file)
    const weights = new Map<string, Tensor>()
    for (const [name, entry] of tensors) weights.set(name, await readTensor(path, file, name, entry))
    return weights
  })
}

/**
 * Writes tensors in the order of their names: the same weights give the same bytes. Flushed to the disk.
 * @returns sha256 (hex) of the file.
 */
export async function writeSafetensors(
  path: string,
  weights: Weights,
  options: WriteOptions,
): Promise<string> {
  const names = [...weights.keys()].sort()
  const width = options.dtype === 'f32' ? 4 : 2
  const header: Record<string, unknown> = {}
  if (options.metadata) header.__metadata__ = options.metadata
  let position = 0
  for (const name of names) {
    const tensor = weights.get(name)!
    const end = position + tensor.size * width
    header[name] = { dtype: options.dtype.toUpperCase(), shape: tensor.dims, data_offsets: [position, end] }
    position = end
  }
  const json = JSON.stringify(header)
  // The data starts on a multiple of 8, so that readers can map it; the padding is spaces, by the format.
  const padded = new TextEncoder().encode(json + ' '.repeat(-Buffer.byteLength(json) & 7))
  const length = new Uint8Array(8)
  new DataView(length.buffer).setBigUint64(0, BigInt(padded.length), true)

  const hash = createHash('sha256')
  const file = await open(path, 'w')
  const write = async (bytes: Uint8Array) => {
    hash.update(bytes)
    await writeAll(file, bytes)
  }
  try {
    await write(length)
    await write(padded)
    for (const name of names) {
      const data = weights.get(name)!.data as Float32Array
      await write(bytesOf(options.dtype === 'f32' ? data : narrowBf16(data)))
    }
    await file.sync()
    return hash.digest('hex')
  } finally {
    await file.close()
  }
}

async function withFile<T>(path: string, use: (file: FileHandle) => Promise<T>): Promise<T> {
  let file: FileHandle
  try {
    file = await open(path, 'r')
  } catch (cause) {
    throw new GraspError('MODEL_INVALID', `${path} cannot be opened: ${describeError(cause)}`, { cause })
  }
  try {
    return await use(file)
  } finally {
    await file.close()
  }
}

async function readHeader(path: string, file: FileHandle): Promise<SafetensorsHeader> {
  const { size } = await file.stat()
  const first = new Uint8Array(Math.min(8, size))
  await readAll(path, file, first, 0)
  const json = new Uint8Array(headerLength(path, first, size))
  await readAll(path, file, json, 8)
  return parseHeader(path, json, size)
}

async function readTensor(path: string, file: FileHandle, name: string, entry: TensorEntry): Promise<Tensor> {
  const { dtype, shape, start, end } = entry
  if (dtype === 'F32') {
    const data = new Float32Array((end - start) / 4)
    await readAll(path, file, bytesOf(data), start)
    return new Tensor('float32', data, shape)
  }
  if (dtype !== 'F16' && dtype !== 'BF16') {
    throw new GraspError(
      'MODEL_UNSUPPORTED',
      `${path}: ${name} has dtype ${dtype}; supported are F32, F16 and BF16. Convert the model first.`,
    )
  }
  const half = new Uint16Array((end - start) / 2)
  await readAll(path, file, bytesOf(half), start)
  return new Tensor('float32', dtype === 'F16' ? widenF16(half) : widenBf16(half), shape)
}

async function readAll(path: string, file: FileHandle, target: Uint8Array, position: number): Promise<void> {
  let done = 0
  while (done < target.length) {
    const length = Math.min(CHUNK, target.length - done)
    const { bytesRead } = await file.read(target, done, length, position + done)
    if (bytesRead === 0) {
      throw new GraspError('MODEL_INVALID', `${path} was cut off while it was read`)
    }
    done += bytesRead
  }
}

async function writeAll(file: FileHandle, source: Uint8Array): Promise<void> {
  let done = 0
  while (done < source.length) {
    const { bytesWritten } = await file.write(source, done, Math.min(CHUNK, source.length - done))
    done += bytesWritten
  }
}

function bytesOf(array: Float32Array | Uint16Array): Uint8Array {
  return new Uint8Array(array.buffer, array.byteOffset, array.byteLength)
}
