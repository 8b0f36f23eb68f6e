import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Tensor } from 'onnxruntime-node'
import { Scope, scoped } from '../../../engine/accelerator/scope.ts'

const tensor = (value: number) => new Tensor('float32', Float32Array.of(value), [1])

function recorder() {
  const freed: Tensor[] = []
  return { freed, device: { free: (each: Tensor) => void freed.push(each) } }
}

test('what a scope owns is freed with it, but for what was kept or freed before', () => {
  const { freed, device } = recorder()
  const scope = new Scope(device)
  const [a, b, c] = [1, 2, 3].map(value => scope.own(tensor(value))) as [Tensor, Tensor, Tensor]
  assert.equal(scope.keep(b), b)
  scope.free(c)
  assert.deepEqual(freed, [c])
  scope.close()
  scope.close()
  assert.deepEqual(freed, [c, a])
  assert.throws(() => scope.keep(b), /not the scope/)
})

test('a scope ends with its body, also where that fails', async () => {
  const { freed, device } = recorder()
  const made = tensor(1)
  const failing = scoped(device, async scope => {
    scope.own(made)
    throw new Error('no')
  })
  await assert.rejects(failing, /no/)
  assert.deepEqual(freed, [made])
  assert.equal(await scoped(device, async scope => scope.keep(scope.own(tensor(2))).dims[0]), 1)
  assert.equal(freed.length, 1)
})
