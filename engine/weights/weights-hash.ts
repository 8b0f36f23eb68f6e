/** Hashes of weights: what a policy version, a replay or a slice is recognised by. */
import { createHash } from 'node:crypto'
import type { Tensor } from 'onnxruntime-node'
import { bytesOf } from '../runtime/bytes-of.ts'
import type { ByteHash } from './hash-thread.ts'
import type { Weights } from './weights.ts'

/** sha256 (hex) over every tensor's name, shape and f32 bytes, in the order of the names. */
export function weightsHash(weights: Weights): string {
  const hasher = new WeightsHasher(createHash('sha256'))
  for (const name of [...weights.keys()].sort()) hasher.add(name, weights.get(name)!)
  return hasher.digest()
}

/** The same of tensors that come one by one. */
export class WeightsHasher {
  readonly #hash: ByteHash

  constructor(hash: ByteHash) {
    this.#hash = hash
  }

  /** In the order of the names. */
  add(name: string, tensor: Tensor): void {
    this.#hash.update(`${name}\n`)
    addTensor(this.#hash, tensor)
  }

  digest(): string {
    return this.#hash.digest('hex')
  }
}

/** sha256 (hex) over one tensor's shape and f32 bytes. */
export function tensorHash(tensor: Tensor): string {
  const hash = createHash('sha256')
  addTensor(hash, tensor)
  return hash.digest('hex')
}

function addTensor(hash: ByteHash, tensor: Tensor): void {
  hash.update(`[${tensor.dims.join(',')}]\n`)
  hash.update(bytesOf(tensor.data as Float32Array))
}
