import type { Tensor } from 'onnxruntime-node'
import type { Device } from './device.ts'
import { scoped } from './scope.ts'

/** Copies of tensors on the device, by their names: all of them or, where it fails, none. The caller frees them. */
export function uploadAll(
  device: Device,
  tensors: Readonly<Record<string, Tensor>>,
): Promise<Record<string, Tensor>> {
  return scoped(device, async scope => {
    const copies: Record<string, Tensor> = {}
    for (const [name, tensor] of Object.entries(tensors))
      copies[name] = scope.own(await device.upload(tensor))
    for (const copy of Object.values(copies)) scope.keep(copy)
    return copies
  })
}
