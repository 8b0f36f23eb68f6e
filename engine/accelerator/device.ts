/**
 * A device with memory of its own. Tensors that are resident there stay until they are freed: nothing else frees
 * them, garbage collection does not reach them. So who makes tensors says in which scope (scope.ts) they live, and
 * `live` tells whether all of them were freed.
 */
import type { Tensor } from 'onnxruntime-node'
import type { Feeds, Fetched } from '../runtime/session.ts'
import type { Scope } from './scope.ts'

export interface DeviceSession {
  /**
   * Runs the graph.
   * @param feeds resident tensors, or small ones on the CPU
   * @param scope takes the outputs that stay on the device
   * @param over resident tensors that outputs are written into, by the outputs' names: such as are fed, too, where one
   * operator writes single elements of them (ScatterND). Of a session that keeps no outputs on the device.
   * @returns the outputs but those that were written into others
   */
  run(feeds: Feeds, scope: Scope, over?: Feeds): Promise<Fetched>
  release(): Promise<void>
}

export interface Device {
  readonly kind: 'webgpu' | 'cuda' | 'cpu'
  /** Most bytes of one tensor that a kernel can be given. */
  readonly bindingBytes: number
  /** Resident tensors that are not freed. */
  readonly live: number

  /** @param resident outputs that stay there, all by default; the others come to the CPU */
  session(name: string, model: Uint8Array, resident?: 'all' | readonly string[]): Promise<DeviceSession>
  /** A copy there; the caller frees it. */
  upload(tensor: Tensor): Promise<Tensor>
  /** The tensor on the CPU, only to be read: a copy, or the tensor itself where it is there already. */
  download(tensor: Tensor): Promise<Tensor>
  free(tensor: Tensor): void
  /** Releases the sessions. Tensors are their owners' to free. */
  close(): Promise<void>
}
