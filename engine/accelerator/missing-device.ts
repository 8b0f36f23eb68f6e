/** What to install when a device cannot be opened. */
import { describeError } from '../../errors/grasp-error.ts'
import { cudaLibraries } from '../devices/cuda-libraries.ts'
import type { Device } from './device.ts'

/** @param cause what onnxruntime said */
export function missingDevice(kind: Device['kind'], cause: unknown): string {
  const advice = kind === 'cuda' && cudaIsInstalled() ? LOADED_CUDA : ADVICE[kind]
  return `device ${kind} cannot be used: ${advice} (${describeError(cause)})`
}

export function cudaIsInstalled(): boolean {
  return cudaLibraries()?.missing.length === 0
}

const LOADED_CUDA =
  'the CUDA provider of onnxruntime is installed, but does not work. See that nvidia-smi lists the GPU, and that the ' +
  'libraries of CUDA 12 and cuDNN 9 are found (LD_LIBRARY_PATH); or set model.device to webgpu or cpu.'

const ADVICE: Readonly<Record<Device['kind'], string>> = {
  webgpu:
    'no adapter that it takes was found (`grasp doctor` tells which there are). On Linux install the Vulkan loader and ' +
    'the driver of the GPU (Debian: libvulkan1 and mesa-vulkan-drivers, or the vendor’s driver), see that vulkaninfo ' +
    'lists it, and that VK_DRIVER_FILES, if it is set, names its file; or set model.device to cpu.',
  cuda:
    'the CUDA provider of onnxruntime is not installed. Install CUDA 12 and cuDNN 9, then run ' +
    '`node node_modules/onnxruntime-node/script/install.js --onnxruntime-node-install=cuda12`, which downloads ' +
    'libonnxruntime_providers_cuda.so; or set model.device to webgpu or cpu.',
  cpu: 'onnxruntime does not run here.',
}
