/** The engine against PyTorch and transformers; test/golden/models.py made the values. */
import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import type { Tensor } from 'onnxruntime-node'
import type { ModelConfig } from '../../../engine/architectures/config.ts'
import { Learner } from '../../../engine/learner/learner.ts'
import { initialState } from '../../../engine/optimiser/adamw.ts'
import type { TrainItem } from '../../../engine/port.ts'
import { parseModelConfig } from '../../../engine/weights/model-config.ts'
import { headName } from '../../../engine/weights/parameter-shapes.ts'
import type { Weights } from '../../../engine/weights/weights.ts'
import { GOLDEN, type Golden, type GoldenName, readGolden, STEPPED } from '../../golden/golden.ts'
import { assertClose, relativeError } from './close-to.ts'
import { dense, goldenItems, responseSequence } from './items.ts'

const f32 = (tensor: Tensor) => tensor.data as Float32Array

for (const name of GOLDEN) {
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
      items = goldenItems(golden, hidden)
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

    it('numbers of scoring are those of the losses', async () => {
      const head = student.get(headName(golden.config))!
      for (const [index, { prompt, teacherPrompt, response }] of golden.items.entries()) {
        const [own] = await learner.hiddenStates(student, [responseSequence(prompt, response)])
        const [others] = await learner.hiddenStates(teacher, [responseSequence(teacherPrompt, response)])
        const { kl, studentLogp } = await learner.numbers(
          { hidden: own!, head },
          { hidden: others!, head: teacherHead },
          response,
        )
        const mean = (values: Float32Array) => values.reduce((sum, value) => sum + value, 0) / values.length
        assertClose('KL', [mean(kl)], [golden.losses['forward-kl'][index]!])
        assertClose('log-probability', [-mean(studentLogp)], [golden.losses['cross-entropy'][index]!])
      }
    })

    it('a teacher of logits teaches what one of hidden states does', async () => {
      const distributions = items['forward-kl'].map(item => {
        assert(item.loss === 'forward-kl')
        return item.teacher
      })
      const logits: TrainItem[] = []
      for (const [index, { prompt, response }] of golden.items.entries()) {
        const { data } = distributions[index]!
        const hidden = new Float32Array(data.buffer, data.byteOffset, data.byteLength / 4)
        const values = await learner.logits({ hidden, head: teacherHead })
        const theirs = dense(values, golden.config.vocabularySize)
        logits.push({ loss: 'forward-kl', prompt, response, teacher: theirs })
      }
      const { losses } = await learner.accumulate(student, teacherHead, logits)
      assertClose('losses', losses, golden.losses['forward-kl'])
      for (const [parameter, gradient] of golden.tensors('forward-kl')) {
        assertClose(`gradient of ${parameter}`, learner.gradient(parameter)!, f32(gradient))
      }
      learner.discard()
    })

    if (!STEPPED.includes(name)) return
    it('AdamW steps with clipping and decay', async () => {
      let weights = student
      const state = initialState(weights)
      for (let step = 0; step < golden.steps; step++) {
        await learner.accumulate(weights, teacherHead, items['forward-kl'])
        const updated = learner.update(weights, state, { ...golden.options, responses: golden.items.length })
        assertClose(`gradient norm of step ${step}`, [updated.gradientNorm], [golden.gradientNorms[step]!])
        weights = updated.weights
      }
      assert(golden.steps > 0)
      for (const [parameter, tensor] of golden.tensors('stepped')) {
        assertClose(`${parameter} after ${golden.steps} steps`, f32(weights.get(parameter)!), f32(tensor))
        assert.notDeepEqual(f32(student.get(parameter)!), f32(tensor), 'the given weights are not written')
      }
    })
  })
}

/** What config.json could say otherwise, by the golden model. */
const CHANGES: Partial<Record<GoldenName, readonly Record<string, unknown>[]>> = {
  llama3: [
    { rope_parameters: { rope_theta: 500 } },
    { rope_parameters: { rope_type: 'linear', factor: 8, rope_theta: 500 } },
  ],
  'llama-linear': [{ rope_parameters: { rope_theta: 500 } }],
  qwen2: [
    { use_sliding_window: false, layer_types: null },
    { sliding_window: 6 },
    { layer_types: ['sliding_attention', 'sliding_attention', 'sliding_attention'] },
    // Without biases.
    { model_type: 'llama', sliding_window: null, layer_types: null },
  ],
  // Without norms in heads.
  qwen3: [{ model_type: 'llama' }],
  gemma2: [
    { sliding_window: 6 },
    { layer_types: ['sliding_attention', 'full_attention', 'full_attention'] },
    { attn_logit_softcapping: null },
    { final_logit_softcapping: null },
    { query_pre_attn_scalar: 16 },
  ],
}

describe('every option of the golden models counts', () => {
  const differs = async (what: string, name: GoldenName, config: (golden: Golden) => ModelConfig) => {
    const golden = await readGolden(name)
    const student = golden.tensors('student')
    const learner = await Learner.create(config(golden), { threads: 2, tokensPerPass: 24 })
    const { prompt, response } = golden.items[1]!
    const [hidden] = await learner.hiddenStates(student, [responseSequence(prompt, response)])
    const logits = await learner.logits({ hidden: hidden!, head: student.get(headName(golden.config))! })
    await learner.close()
    const error = relativeError(logits, f32(golden.tensors('logits').get('1')!))
    assert(error > 1e-2, `${what} changes the logits by ${error} only`)
  }
  for (const [name, changes] of Object.entries(CHANGES)) {
    for (const change of changes) {
      const what = `${name} with ${JSON.stringify(change)}`
      it(what, () =>
        differs(what, name as GoldenName, ({ raw }) => parseModelConfig(what, { ...raw, ...change })),
      )
    }
  }
  for (const option of ['embeddingScale', 'normOffset', 'attentionScale', 'slidingWindow'] as const) {
    it(`gemma2 without ${option}`, () =>
      differs(option, 'gemma2', ({ config: { [option]: _, ...rest } }) => rest as ModelConfig))
  }
})
