/** Providers as they are on this machine: WebGPU counts only where a Vulkan device is installed. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { probe } from '../../../engine/devices/probe.ts'
import { readVulkanWords } from '../../../engine/devices/vulkan-words.ts'
import { withoutVulkanDevice } from '../../helpers/vulkan-device.ts'

test('the CPU computes', async () => {
  const { ending, finding } = await probe('cpu')
  assert.deepEqual(ending, { kind: 'done' })
  assert.ok(finding.error! > 0 && finding.error! < 1e-5, `off by ${finding.error}`)
})

const skip = withoutVulkanDevice()
const webgpu = await probe('webgpu')

test('a WebGPU device computes, and keeps results for the next run', { skip }, () => {
  assert.deepEqual(webgpu.ending, { kind: 'done' })
  assert.ok(webgpu.finding.error! < 1e-4, `off by ${webgpu.finding.error}`)
  assert.equal(webgpu.finding.resident, true)
  assert.equal(typeof webgpu.finding.half, 'boolean')
})

test('its largest buffer holds what WebGPU guarantees', { skip }, () => {
  const { bufferBytes, madeBytes, bindingBytes = 2 ** 27 } = webgpu.finding.limits!
  // maxBufferSize and maxStorageBufferBindingSize of the standard's table of limits.
  assert.ok((bufferBytes ?? madeBytes!) >= 2 ** 28)
  assert.ok(bindingBytes >= 2 ** 27)
})

test('the loader names the device that is used', {
  skip: skip || (process.platform !== 'linux' && 'devices have other loaders here'),
}, () => {
  const { used, devices } = readVulkanWords(webgpu.words)
  assert.ok(used && devices.includes(used.name), webgpu.words.slice(-2000))
})
