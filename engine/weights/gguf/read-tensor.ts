/** Reads one tensor of a GGUF file into f32, a piece at a time: never its stored bytes and its values both as a whole. */
import type { FileHandle } from 'node:fs/promises'
import { Tensor } from 'onnxruntime-node'
import { describeError, GraspError } from '../../../errors/grasp-error.ts'
import type { GgufTensor } from './gguf-header.ts'

const PIECE = 4 * 1024 * 1024

export interface ReadOptions {
  /** Where a stored row belongs; the same place where absent. A vector's values are rows of one. */
  readonly rowOrder?: (row: number) => number
  /** Added to every value. */
  readonly offset?: number
}

/** @throws GraspError MODEL_INVALID when the file ends early or cannot be read. */
export async function readGgufTensor(
  path: string,
  file: FileHandle,
  name: string,
  { type, shape, start, end }: GgufTensor,
  { rowOrder, offset }: ReadOptions = {},
): Promise<Tensor> {
  const size = shape.reduce((product, length) => product * length, 1)
  const values = new Float32Array(size)
  const columns = rowOrder && shape.length === 1 ? 1 : shape.at(-1)!
  const rowBytes = (columns / type.block) * type.bytes
  const rowsAtOnce = Math.max(1, Math.floor(PIECE / rowBytes))
  const buffer = new Uint8Array(Math.min(rowsAtOnce * rowBytes, end - start))
  for (let row = 0; row * columns < size; row += rowsAtOnce) {
    const rows = Math.min(rowsAtOnce, size / columns - row)
    const bytes = buffer.subarray(0, rows * rowBytes)
    await readAll(path, file, name, bytes, start + row * rowBytes)
    if (!rowOrder) {
      type.dequantise(bytes, values.subarray(row * columns, (row + rows) * columns))
      continue
    }
    for (let i = 0; i < rows; i++) {
      const place = rowOrder(row + i) * columns
      type.dequantise(
        bytes.subarray(i * rowBytes, (i + 1) * rowBytes),
        values.subarray(place, place + columns),
      )
    }
  }
  if (offset !== undefined) for (let i = 0; i < size; i++) values[i]! += offset
  return new Tensor('float32', values, shape)
}

async function readAll(
  path: string,
  file: FileHandle,
  name: string,
  target: Uint8Array,
  position: number,
): Promise<void> {
  let done = 0
  while (done < target.length) {
    let bytesRead: number
    try {
      ;({ bytesRead } = await file.read(target, done, target.length - done, position + done))
    } catch (cause) {
      throw new GraspError('MODEL_INVALID', `${path}: ${name} cannot be read: ${describeError(cause)}`, {
        cause,
      })
    }
    if (bytesRead === 0) throw new GraspError('MODEL_INVALID', `${path} was cut off while ${name} was read`)
    done += bytesRead
  }
}
