import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import { Tensor } from 'onnxruntime-node'
import type { Device } from '../../../engine/accelerator/device.ts'
import { openOnnxDevice } from '../../../engine/accelerator/onnx-device.ts'
import { downloadWeights, freeWeights, rowRuns, uploadWeights } from '../../../engine/accelerator/resident.ts'
import { readGolden } from '../../golden/golden.ts'

describe('parameters on a device', () => {
  let device: Device
  before(async () => {
    device = await openOnnxDevice({ kind: 'cpu', threads: 1, bindingBytes: 1000 })
  })
  after(() => device.close())

  it('rows are cut into runs of like length that fit', () => {
    assert.deepEqual(rowRuns(10, 4, 1000), [[0, 10]])
    assert.deepEqual(rowRuns(10, 4, 16), [
      [0, 4],
      [4, 8],
      [8, 10],
    ])
    // Even parts: 7 rows of which 3 fit are 3, 3 and 1, not 3, 3 and a long rest.
    assert.deepEqual(rowRuns(7, 4, 12), [
      [0, 3],
      [3, 6],
      [6, 7],
    ])
    assert.deepEqual(rowRuns(2, 4, 1), [
      [0, 1],
      [1, 2],
    ])
  })

  it('go there and come back with the same bits, embedding and head in parts', async () => {
    const { config, tensors } = await readGolden('llama-untied')
    const weights = tensors('student')
    const resident = await uploadWeights(device, config, weights)
    const cut = [...resident].filter(([, { parts }]) => parts.length > 1).map(([name]) => name)
    assert.deepEqual(cut.sort(), ['lm_head.weight', 'model.embed_tokens.weight'])
    for (const { parts } of resident.values()) {
      if (parts.length === 1) continue
      for (const part of parts) assert.ok(4 * part.size <= 1000)
    }
    assert.deepEqual(await downloadWeights(device, resident), weights)
    freeWeights(resident)
    assert.equal(device.live, 0)
  })

  it('what others hold is not freed, and nothing is freed twice', async () => {
    const { config } = await readGolden('llama-tied')
    const upload = (names: string[]) =>
      uploadWeights(
        device,
        config,
        new Map(names.map(name => [name, new Tensor('float32', Float32Array.of(1), [1])])),
      )
    const [one, two] = [await upload(['a', 'b']), await upload(['c'])]
    const shared = new Map([...two, ['b', one.get('b')!]] as const)
    freeWeights(one, [shared])
    assert.equal(device.live, 2)
    freeWeights(one, [shared])
    freeWeights(shared)
    freeWeights(one)
    assert.equal(device.live, 0)
  })
})
