import { test } from 'node:test'
import { GOLDEN } from '../../golden/golden.ts'
import { withoutVulkanDevice } from '../../helpers/vulkan-device.ts'
import { goldenOnDevice } from './golden-on-devices.ts'

const skip = withoutVulkanDevice()
if (skip) test('golden values on a WebGPU device', { skip })
else {
  goldenOnDevice('on a WebGPU device', { names: GOLDEN, kind: 'webgpu' })
  goldenOnDevice('in parts on a WebGPU device', { names: ['gemma2'], kind: 'webgpu', bindingBytes: 400 })
}
