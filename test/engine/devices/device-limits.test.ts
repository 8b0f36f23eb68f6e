import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type Ask, limitsBy, readRefusal } from '../../../engine/devices/device-limits.ts'

const GIB = 2 ** 30

/** A device that refuses in the order that onnxruntime's does: too many pieces first, then too large a buffer. */
function device(limits: { buffer: number; binding: number; bindings: number; memory?: number }) {
  const made: number[] = []
  const ask: Ask = async bytes => {
    const pieces = Math.ceil(bytes / limits.binding)
    if (pieces + 1 > limits.bindings) return { pieces, bindings: limits.bindings }
    if (bytes > limits.buffer) return { bufferBytes: limits.buffer }
    if (bytes > (limits.memory ?? Number.POSITIVE_INFINITY)) return undefined
    made.push(bytes)
    return 'made'
  }
  return { ask, made }
}

test('a refusal says what the limits are', () => {
  assert.deepEqual(
    readRefusal(
      'WebGPU validation failed. Buffer size (11811160064) exceeds the max buffer size limit (1073741824).\n - While calling',
    ),
    { bufferBytes: GIB },
  )
  assert.deepEqual(readRefusal('… was false. Too many storage buffers in shader. Current: 17, Max is 12\n'), {
    pieces: 16,
    bindings: 12,
  })
  assert.equal(readRefusal('vkAllocateMemory failed with VK_ERROR_OUT_OF_DEVICE_MEMORY'), undefined)
})

test('limits are found without making a buffer', async () => {
  const { ask, made } = device({ buffer: 2 * GIB, binding: GIB, bindings: 12 })
  assert.deepEqual(await limitsBy(ask, 64 * GIB), { bufferBytes: 2 * GIB, bindingBytes: GIB, bindings: 12 })
  assert.deepEqual(made, [])
})

test('a limit that is no power of two is found to the page', async () => {
  const binding = 800_000_000
  const { ask } = device({ buffer: GIB, binding, bindings: 9 })
  const { bindingBytes } = await limitsBy(ask, 64 * GIB)
  assert.ok(Math.abs(bindingBytes! - binding) < 4096, `${bindingBytes}`)
})

test('bindings so large that no refusal shows them are left out', async () => {
  const { ask } = device({ buffer: 4 * GIB, binding: 4 * GIB, bindings: 10 })
  assert.deepEqual(await limitsBy(ask, 64 * GIB), { bufferBytes: 4 * GIB })
})

test('where nothing is refused, what was made is told, and no more than half of the free memory was asked for', async () => {
  const { ask, made } = device({ buffer: 64 * GIB, binding: 64 * GIB, bindings: 10 })
  assert.deepEqual(await limitsBy(ask, 6 * GIB), { madeBytes: 2 * GIB })
  assert.deepEqual(made, [2 * GIB])
})

test('a device whose memory runs out is asked for less', async () => {
  const { ask } = device({ buffer: 64 * GIB, binding: 64 * GIB, bindings: 10, memory: GIB })
  assert.deepEqual(await limitsBy(ask, 64 * GIB), { madeBytes: GIB })
})
