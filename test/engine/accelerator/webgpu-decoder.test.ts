import { test } from 'node:test'
import { withoutVulkanDevice } from '../../helpers/vulkan-device.ts'
import { decoderOnDevice } from './decoder-on-devices.ts'

const skip = withoutVulkanDevice()
if (skip) test('decoding on a WebGPU device', { skip })
else decoderOnDevice('decoding on a WebGPU device', 'webgpu')
