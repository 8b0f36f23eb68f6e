/**
 * What the Vulkan loader (with VK_LOADER_DEBUG) and Dawn, onnxruntime's WebGPU, say on standard error while a session
 * is made. It is the one place where a program without native code of its own learns which device was taken.
 */

export interface VulkanWords {
  /** libvulkan was found and loaded. */
  readonly loader: boolean
  /** Names of the devices that drivers offer. */
  readonly devices: readonly string[]
  /** The one that the session uses. */
  readonly used?: VulkanDevice
  /** Why WebGPU refused a device. */
  readonly refusals: readonly string[]
}

export interface VulkanDevice {
  readonly name: string
  /** The driver's library. */
  readonly driver: string
}

/** Makes the loader speak. */
export function withLoaderWords(environment: NodeJS.ProcessEnv): NodeJS.ProcessEnv {
  return { ...environment, VK_LOADER_DEBUG: 'error,warn,info,driver' }
}

export function readVulkanWords(words: string): VulkanWords {
  const devices = [...words.matchAll(/DRIVER:\s+\[\d+\] (.+?)\s*$/gm)].map(match => match[1]!)
  const [, name, driver] = /Using "(.+)" with driver: "(.+)"/.exec(words) ?? []
  const refusals = [...words.matchAll(/^Warning: (.+)\n - While initializing adapter/gm)].map(
    match => match[1]!,
  )
  return {
    loader: /^(\[Vulkan Loader\] )?(INFO|DRIVER|ERROR|WARNING)\b.*:/m.test(words),
    devices: [...new Set(devices)],
    ...(name !== undefined && driver !== undefined && { used: { name, driver } }),
    refusals: [...new Set(refusals)],
  }
}

/** Devices that compute on the processor. */
export function isSoftware(name: string): boolean {
  return /swiftshader|llvmpipe|lavapipe|softpipe|basic render/i.test(name)
}
