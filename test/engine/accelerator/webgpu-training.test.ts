import { test } from 'node:test'
import { withoutVulkanDevice } from '../../helpers/vulkan-device.ts'
import { trainingOnDevice } from './training-on-devices.ts'

const skip = withoutVulkanDevice()
if (skip) test('training on a WebGPU device', { skip })
else trainingOnDevice('training on a WebGPU device', 'webgpu')
