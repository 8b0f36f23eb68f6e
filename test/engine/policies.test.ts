import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Tensor } from 'onnxruntime-node'
import type { Held } from '../../engine/backend.ts'
import { Policies, type PolicyBackend } from '../../engine/policies.ts'
import { parseModelConfig } from '../../engine/weights/model-config.ts'
import type { Weights } from '../../engine/weights/weights.ts'

const CONFIG = parseModelConfig('config.json', {
  model_type: 'llama',
  hidden_size: 2,
  intermediate_size: 2,
  num_hidden_layers: 1,
  num_attention_heads: 1,
  head_dim: 8,
  vocab_size: 3,
  max_position_embeddings: 4,
  tie_word_embeddings: true,
})

const weights = (value: number): Weights =>
  new Map([['model.embed_tokens.weight', new Tensor('float32', new Float32Array(6).fill(value), [3, 2])]])

/** As the CPU's, which frees nothing; told what is given up. */
const released: Held[] = []
const BACKEND: PolicyBackend = {
  fetch: async tensor => tensor as Tensor,
  release: held => {
    released.push(held)
  },
}

test('versions are numbered on from 0, and old ones dropped', async () => {
  const teacher = weights(0)
  const policies = await Policies.create(BACKEND, CONFIG, teacher, 1)
  assert.equal(policies.get(0), teacher)
  assert.deepEqual([policies.add(weights(1)), policies.add(weights(2))], [1, 2])
  assert.deepEqual([...policies.versions.keys()], [1, 2])
  assert.deepEqual(released.splice(0), [teacher])
  assert.equal(policies.get('teacher'), teacher)
  assert.equal(policies.get(0), teacher)
  policies.add(weights(3))
  assert.equal(released.splice(0).length, 1)
  assert.throws(() => policies.get(1), {
    code: 'ENGINE_FAILED',
    message: /policy version 1 is not held; held: 2, 3/,
  })
  policies.restore(
    new Map([
      [6, weights(6)],
      [7, weights(7)],
      [8, weights(8)],
    ]),
    8,
  )
  assert.deepEqual([...policies.versions.keys()], [7, 8])
  assert.equal(policies.newest, 8)
  assert.equal(released.splice(0).length, 3)
})

test('a policy is known by the hash of its weights, its head by its own', async () => {
  const policies = await Policies.create(BACKEND, CONFIG, weights(0), 1)
  policies.add(weights(1))
  assert.equal(await policies.hash(0), await policies.hash('teacher'))
  assert.notEqual(await policies.hash(1), await policies.hash(0))
  assert.notEqual((await policies.side(1)).headHash, (await policies.side(0)).headHash)
  assert.equal((await policies.side(0)).headHash, (await policies.side('teacher')).headHash)
})

test('a teacher that was changed is found out', async () => {
  const teacher = weights(0)
  const policies = await Policies.create(BACKEND, CONFIG, teacher, 1)
  await policies.checkTeacher()
  const data = teacher.get('model.embed_tokens.weight')!.data as Float32Array
  data[4] = 1e-9
  await assert.rejects(policies.checkTeacher(), {
    code: 'ENGINE_FAILED',
    message: /teacher's weights changed/,
  })
})
