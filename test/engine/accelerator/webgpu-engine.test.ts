import assert from 'node:assert/strict'
import { test } from 'node:test'
import { openEngineProcess } from '../../../engine/process/proxy.ts'
import { makeTinyModel } from '../../helpers/tiny-model.ts'
import { withoutVulkanDevice } from '../../helpers/vulkan-device.ts'
import { engineOnDevice } from './engine-on-devices.ts'

const skip = withoutVulkanDevice()
if (!skip) engineOnDevice('the engine on a WebGPU device', 'webgpu')

test('the engine on a WebGPU device, in a process of its own', { skip }, async () => {
  const model = await makeTinyModel()
  const engine = await openEngineProcess({
    path: model.path,
    device: 'webgpu',
    threads: 1,
    keepPolicies: 0,
    tokensPerPass: 64,
    sequencesPerPass: 2,
  })
  const { device, weightsHash } = await engine.info()
  assert.equal(device, 'webgpu')
  assert.equal(await engine.weightsHash(0), weightsHash)
  const ids = await engine.encodeChat([{ role: 'user', content: 'the hen' }])
  const { tokens } = await engine.accumulate([
    { loss: 'cross-entropy', prompt: ids, response: ids.slice(0, 4) },
  ])
  assert.equal(tokens, 4)
  await engine.close()
  await model.remove()
})
