/** What to install when a device cannot be opened. */
import { describeError } from '../../errors/grasp-error.ts'
import type { Device } from './device.ts'

/** @param cause what onnxruntime said */
export function missingDevice(kind: Device['kind'], cause: unknown): string {
  return `device ${kind} cannot be used: ${ADVICE[kind]} (${describeError(cause)})`
}

const ADVICE: Readonly<Record<Device['kind'], string>> = {
  webgpu:
    'no adapter was found. On Linux install the Vulkan loader and the driver of the GPU (Debian: libvulkan1 and ' +
    'mesa-vulkan-drivers, or the vendor’s driver), see that vulkaninfo lists it, and that VK_DRIVER_FILES, if it is ' +
    'set, names its file; or set model.device to cpu.',
  cuda:
    'the CUDA provider of onnxruntime is not installed. Install CUDA 12 and cuDNN 9, then run ' +
    '`node node_modules/onnxruntime-node/script/install.js --onnxruntime-node-install=cuda12`, which downloads ' +
    'libonnxruntime_providers_cuda.so; or set model.device to webgpu or cpu.',
  cpu: 'onnxruntime does not run here.',
}
