import { test } from 'node:test'
import { withoutVulkanDevice } from '../../helpers/vulkan-device.ts'
import { engineOnDevice } from './engine-on-devices.ts'

const skip = withoutVulkanDevice()
if (skip) test('the engine on a WebGPU device', { skip })
else engineOnDevice('the engine on a WebGPU device', 'webgpu')
