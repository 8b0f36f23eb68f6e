import assert from 'node:assert/strict'
import { test } from 'node:test'
import { readVulkanInfo } from '../../../engine/devices/vulkan-info.ts'

/** What counts of the text that vulkaninfo 1.3 prints. */
const device = (number: number, lines: string) => `GPU${number}:
VkPhysicalDeviceProperties:
---------------------------
${lines}
`
const TEXT = `==========
VULKANINFO
==========

Device Groups:
==============
Group 0:
	Properties:
		physicalDevices: count = 1
			NVIDIA T4 (ID: 0)

Device Properties and Extensions:
=================================
${device(
  0,
  `	deviceType        = PHYSICAL_DEVICE_TYPE_DISCRETE_GPU
	deviceName        = NVIDIA T4
	maxStorageBufferRange                           = 4294967295
	driverName      = NVIDIA
	driverInfo      = 550.54
memoryHeaps: count = 3
	memoryHeaps[0]:
		size   = 16106127360 (0x3c0000000) (15.00 GiB)
		budget = 12884901888 (0x300000000) (12.00 GiB)
		usage  = 0 (0x00000000) (0.00 B)
		flags: count = 1
			MEMORY_HEAP_DEVICE_LOCAL_BIT
	memoryHeaps[1]:
		size   = 50000000000 (0xba43b7400) (46.57 GiB)
		flags:
			None
	memoryHeaps[2]:
		size   = 224395264 (0x0d600000) (214.00 MiB)
		flags: count = 1
			MEMORY_HEAP_DEVICE_LOCAL_BIT
memoryTypes: count = 1
	memoryTypes[0]:
		propertyFlags = 0x0001: count = 1
			MEMORY_PROPERTY_DEVICE_LOCAL_BIT`,
)}
${device(
  1,
  `	deviceType        = PHYSICAL_DEVICE_TYPE_CPU
	deviceName        = SwiftShader Device (Subzero)
	maxStorageBufferRange                           = 1073741824
	driverName      = SwiftShader driver
	driverInfo      = 
memoryHeaps: count = 1
	memoryHeaps[0]:
		size   = 2147483648 (0x80000000) (2.00 GiB)
		flags: count = 1
			MEMORY_HEAP_DEVICE_LOCAL_BIT
memoryTypes: count = 1`,
)}`

test("each device's memory is its own largest heap, not the machine's", () => {
  assert.deepEqual(readVulkanInfo(TEXT), [
    {
      name: 'NVIDIA T4',
      type: 'discrete GPU',
      driver: 'NVIDIA, 550.54',
      bindingBytes: 4294967295,
      memory: 16106127360,
      budget: 12884901888,
    },
    {
      name: 'SwiftShader Device (Subzero)',
      type: 'CPU',
      driver: 'SwiftShader driver',
      bindingBytes: 1073741824,
      memory: 2147483648,
    },
  ])
})

test('text of another form holds no devices', () => {
  assert.deepEqual(readVulkanInfo(''), [])
  assert.deepEqual(readVulkanInfo('Cannot create Vulkan instance.\n'), [])
})
