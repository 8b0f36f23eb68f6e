/** The engine against PyTorch and transformers; test/golden/llama.py made the values. */
import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import type { Tensor } from 'onnxruntime-node'
import { Learner } from '../../../engine/learner/learner.ts'
import { initialState } from '../../../engine/optimiser/adamw.ts'
import type { TrainItem } from '../../../engine/port.ts'
import { headName } from '../../../engine/weights/parameter-shapes.ts'
import type { Weights } from '../../../engine/weights/weights.ts'
import { type Golden, readGolden } from '../../golden/golden.ts'
import { assertClose } from './close-to.ts'
import { factored, responseSequence } from './items.ts'

const f32 = (tensor: Tensor) => tensor.data as Float32Array

for (const name of ['llama-tied', 'llama-untied'] as const) {
  describe(`${name}: PyTorch's values`, () => {
    let golden: Golden
    let learner: Learner
    let student: Weights
    let teacher: Weights
    let teacherHead: Tensor
    let items: Record<'forward-kl' | 'cross-entropy', TrainItem[]>

    before(async () => {
      golden = await readGolden(name)
      learner = await Learner.create(golden.config, { threads: 2, tokensPerPass: 24 })
      student = golden.tensors('student')
      teacher = golden.tensors('teacher')
      teacherHead = teacher.get(headName(golden.config))!
      const hidden = await learner.hiddenStates(
        teacher,
        golden.items.map(item => responseSequence(item.teacherPrompt, item.response)),
      )
      items = {
        'forward-kl': golden.items.map(({ prompt, response }, index) => ({
          loss: 'forward-kl',
          prompt,
          response,
          teacher: factored(hidden[index]!, golden.config.hiddenSize),
        })),
        'cross-entropy': golden.items.map(({ prompt, response }) => ({
          loss: 'cross-entropy',
          prompt,
          response,
        })),
      }
    })
    after(() => learner.close())

    it('logits', async () => {
      const sequences = golden.items.map(item => responseSequence(item.prompt, item.response))
      for (const [index, hidden] of (await learner.hiddenStates(student, sequences)).entries()) {
        const logits = await learner.logits({ hidden, head: student.get(headName(golden.config))! })
        assertClose(`logits of item ${index}`, logits, f32(golden.tensors('logits').get(`${index}`)!))
      }
    })

    for (const kind of ['forward-kl', 'cross-entropy'] as const) {
      it(`${kind}: losses and gradients`, async () => {
        const { losses, tokens } = await learner.accumulate(student, teacherHead, items[kind])
        assert.equal(
          tokens,
          golden.items.reduce((sum, { response }) => sum + response.length, 0),
        )
        assertClose(`${kind} losses`, losses, golden.losses[kind])
        const expected = golden.tensors(kind)
        assert.deepEqual([...expected.keys()].sort(), [...student.keys()].sort())
        for (const [parameter, gradient] of expected) {
          assertClose(`${kind} gradient of ${parameter}`, learner.gradient(parameter)!, f32(gradient))
        }
        learner.discard()
      })
    }

    it('AdamW steps with clipping and decay', async () => {
      let weights = student
      const state = initialState(weights)
      for (let step = 0; step < golden.steps; step++) {
        await learner.accumulate(weights, teacherHead, items['forward-kl'])
        const updated = learner.update(weights, state, { ...golden.options, responses: golden.items.length })
        assertClose(`gradient norm of step ${step}`, [updated.gradientNorm], [golden.gradientNorms[step]!])
        weights = updated.weights
      }
      for (const [parameter, tensor] of golden.tensors('stepped')) {
        assertClose(`${parameter} after ${golden.steps} steps`, f32(weights.get(parameter)!), f32(tensor))
        assert.notDeepEqual(f32(student.get(parameter)!), f32(tensor), 'the given weights are not written')
      }
    })
  })
}
