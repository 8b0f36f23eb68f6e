import assert from 'node:assert/strict'
import { test } from 'node:test'
import { isSoftware, readVulkanWords, withLoaderWords } from '../../../engine/devices/vulkan-words.ts'

/** As the loader of Vulkan 1.3.239 and Dawn wrote them. */
const OLD = `INFO:             Vulkan Loader Version 1.3.239
INFO | DRIVER:    linux_read_sorted_physical_devices:
INFO | DRIVER:         Original order:
INFO | DRIVER:               [0] llvmpipe (LLVM 15.0.6, 256 bits)
INFO | DRIVER:               [1] SwiftShader Device (Subzero)
INFO | DRIVER:         Sorted order:
INFO | DRIVER:               [0] SwiftShader Device (Subzero)  
INFO | DRIVER:               [1] llvmpipe (LLVM 15.0.6, 256 bits)  
Warning: Vulkan shaderUniform*ArrayDynamicIndexing required.
 - While initializing adapter (backend=BackendType::Vulkan)
    at InitializeImpl (/build/dawn/native/vulkan/PhysicalDeviceVk.cpp:253)
DRIVER:           vkCreateDevice layer callstack setup to:
DRIVER:                  Using "SwiftShader Device (Subzero)" with driver: "/usr/lib/chromium/libvk_swiftshader.so"
`
/** A later loader puts its name in front. */
const NEW = `[Vulkan Loader] INFO | DRIVER:             [0] SwiftShader Device (Subzero)
[Vulkan Loader] DRIVER:                Using "SwiftShader Device (Subzero)" with driver: "/x/libvk_swiftshader.so"
`

test('devices, the one in use and refusals are read from either form', () => {
  assert.deepEqual(readVulkanWords(OLD), {
    loader: true,
    devices: ['llvmpipe (LLVM 15.0.6, 256 bits)', 'SwiftShader Device (Subzero)'],
    used: { name: 'SwiftShader Device (Subzero)', driver: '/usr/lib/chromium/libvk_swiftshader.so' },
    refusals: ['Vulkan shaderUniform*ArrayDynamicIndexing required.'],
  })
  const { used, devices, loader } = readVulkanWords(NEW)
  assert.deepEqual([used?.name, devices, loader], [devices[0], ['SwiftShader Device (Subzero)'], true])
})

test('without a loader there are no words of one', () => {
  const words = 'error: XDG_RUNTIME_DIR is invalid or not set in the environment.\n(node:1) Warning: x\n'
  assert.deepEqual(readVulkanWords(words), { loader: false, devices: [], refusals: [] })
})

test('software devices are known by name', () => {
  assert.ok(isSoftware('llvmpipe (LLVM 15.0.6, 256 bits)') && isSoftware('SwiftShader Device (Subzero)'))
  assert.ok(!isSoftware('NVIDIA GeForce RTX 4090') && !isSoftware('AMD Radeon 780M (RADV PHOENIX)'))
})

test('the loader is made to speak, whatever else is set', () => {
  const { VK_LOADER_DEBUG, VK_DRIVER_FILES } = withLoaderWords({
    VK_LOADER_DEBUG: 'none',
    VK_DRIVER_FILES: 'x',
  })
  assert.match(VK_LOADER_DEBUG!, /driver/)
  assert.equal(VK_DRIVER_FILES, 'x')
})
