/** The engine's contract on a device; every tensor that an engine makes there is freed when it closes. */
import assert from 'node:assert/strict'
import { after } from 'node:test'
import type { Device } from '../../../engine/accelerator/device.ts'
import { deviceBackend } from '../../../engine/accelerator/device-backend.ts'
import { openOnnxDevice } from '../../../engine/accelerator/onnx-device.ts'
import { openLocalEngine } from '../../../engine/local-engine.ts'
import { engineContract } from '../engine-contract.ts'

export function engineOnDevice(name: string, kind: Device['kind'], bindingBytes?: number): void {
  const devices: Device[] = []
  const open: Parameters<typeof engineContract>[1] = options =>
    openLocalEngine(options, async (config, rest) => {
      const device = await openOnnxDevice({ kind, threads: 2, bindingBytes })
      devices.push(device)
      return deviceBackend(device, config, rest)
    })
  engineContract(name, open, kind)
  after(() => {
    assert.ok(devices.length > 0)
    for (const device of devices) assert.equal(device.live, 0)
  })
}
