/** A device that is not there is named with what to install. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { cudaIsInstalled } from '../../../engine/accelerator/missing-device.ts'
import { openOnnxDevice } from '../../../engine/accelerator/onnx-device.ts'
import { openLocalEngine } from '../../../engine/local-engine.ts'
import { makeTinyModel } from '../../helpers/tiny-model.ts'

const linux = process.platform === 'linux' ? false : 'drivers are found otherwise here'
// Before any session: drivers are looked for once a process.
process.env.VK_DRIVER_FILES = '/nowhere/driver.json'

test('webgpu without an adapter', { skip: linux }, async () => {
  await assert.rejects(openOnnxDevice({ kind: 'webgpu', threads: 1 }), {
    code: 'ENGINE_FAILED',
    message:
      /device webgpu cannot be used: no adapter that it takes was found.*grasp doctor.*libvulkan1.*VK_DRIVER_FILES/,
  })
})

const cuda = cudaIsInstalled() ? 'the CUDA provider is installed' : false

test('cuda without its provider', { skip: cuda }, async () => {
  const model = await makeTinyModel()
  const options = { path: model.path, threads: 1, keepPolicies: 0, tokensPerPass: 64, sequencesPerPass: 1 }
  await assert.rejects(openLocalEngine({ ...options, device: 'cuda' }), {
    code: 'ENGINE_FAILED',
    message: /device cuda cannot be used: the CUDA provider of onnxruntime is not installed.*install=cuda12/,
  })
  await assert.rejects(openLocalEngine({ ...options, device: 'webgpu', optimiserState: 'bf16' }), {
    code: 'CONFIG_INVALID',
    message: /optimiserState bf16 is for model.device cpu/,
  })
  await model.remove()
})
