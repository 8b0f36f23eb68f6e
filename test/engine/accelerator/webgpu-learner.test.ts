import { test } from 'node:test'
import { withoutVulkanDevice } from '../../helpers/vulkan-device.ts'
import { learnerOnDevice } from './learner-on-devices.ts'

const skip = withoutVulkanDevice()
if (skip) test('the learner on a WebGPU device', { skip })
else learnerOnDevice('the learner on a WebGPU device', 'webgpu')
