/** Hashes of weights: what a policy version, a replay or a slice is recognised by. */
import { createHash, type Hash } from 'node:crypto'
import type { Tensor } from 'onnxruntime-node'
import type { Weights } from './weights.ts'

/** sha256 (hex) over every tensor's name, shape and f32 bytes, in the order of the names. */
export function weightsHash(weights: Weights): string {
  const hash = createHash('sha256')
  for (const name of [...weights.keys()].sort()) {
    hash.update(`${name}\n`)
    addTensor(hash, weights.get(name)!)
  }
  return hash.digest('hex')
}

/** sha256 (hex) over one tensor's shape and f32 bytes. */
export function tensorHash(tensor: Tensor): string {
  const hash = createHash('sha256')
  addTensor(hash, tensor)
  return hash.digest('hex')
}

function addTensor(hash: Hash, tensor: Tensor): void {
  const data = tensor.data as Float32Array
  hash.update(`[${tensor.dims.join(',')}]\n`)
  hash.update(new Uint8Array(data.buffer, data.byteOffset, data.byteLength))
}
