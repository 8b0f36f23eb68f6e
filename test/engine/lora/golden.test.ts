/** LoRA against PEFT and PyTorch; test/golden/lora.py made the values. */
import assert from 'node:assert/strict'
import { readFile } from 'node:fs/promises'
import { describe, it } from 'node:test'
import { fileURLToPath } from 'node:url'
import { Tensor } from 'onnxruntime-node'
import { Learner } from '../../../engine/learner/learner.ts'
import { factorShapes } from '../../../engine/lora/adapter.ts'
import { initialState } from '../../../engine/optimiser/adamw.ts'
import type { LoraOptions, TrainItem } from '../../../engine/port.ts'
import { headName } from '../../../engine/weights/parameter-shapes.ts'
import { readSafetensors } from '../../../engine/weights/safetensors.ts'
import type { Weights } from '../../../engine/weights/weights.ts'
import { type Golden, type GoldenName, readGolden } from '../../golden/golden.ts'
import { uniform } from '../../golden/weights.ts'
import { assertClose } from '../learner/close-to.ts'
import { factored, responseSequence } from '../learner/items.ts'

interface Case extends Pick<LoraOptions, 'rank' | 'alpha' | 'rankStabilised'>, Pick<Golden, 'options'> {
  readonly model: GoldenName
  readonly targets: string | readonly string[]
  readonly losses: readonly number[]
  readonly gradientNorms: readonly number[]
}

const file = (extension: string) => fileURLToPath(new URL(`../../golden/lora.${extension}`, import.meta.url))
const cases: Record<string, Case> = JSON.parse(await readFile(file('json'), 'utf8'))
const stored = await readSafetensors(file('safetensors'))
const f32 = (tensor: Tensor) => tensor.data as Float32Array

function tensors(prefix: string): Weights {
  const ours = [...stored].filter(([name]) => name.startsWith(prefix))
  assert(ours.length > 0)
  return new Map(ours.map(([name, tensor]) => [name.slice(prefix.length), tensor]))
}

for (const [name, golden] of Object.entries(cases)) {
  describe(`LoRA, ${name} (${golden.model}): PEFT's values`, () => {
    for (const activationBytes of [undefined, 0]) {
      it(activationBytes === 0 ? 'with activations computed again' : 'with activations kept', async () => {
        const { config, items, tensors: weightsOf } = await readGolden(golden.model)
        const { rank, alpha, rankStabilised, model: _, options, losses, gradientNorms } = golden
        const lora = { rank, alpha, rankStabilised, targets: [golden.targets].flat(), seed: 1 }
        const settings = { threads: 2, tokensPerPass: 24, lora }
        const learner = await Learner.create(
          config,
          activationBytes === undefined ? settings : { ...settings, activationBytes },
        )
        const base = weightsOf('student')
        const teacher = weightsOf('teacher')
        const head = teacher.get(headName(config))!
        const hidden = await learner.hiddenStates(
          teacher,
          items.map(item => responseSequence(item.teacherPrompt, item.response)),
        )
        const lessons = items.map(
          ({ prompt, response }, index): TrainItem => ({
            loss: 'forward-kl',
            prompt,
            response,
            teacher: factored(hidden[index]!, config.hiddenSize),
          }),
        )
        let adapter: Weights = new Map(
          [...factorShapes(config, lora)].map(([key, shape]) => {
            const draw = uniform(`adapter ${key}`)
            const data = Float32Array.from({ length: shape[0]! * shape[1]! }, () => 0.3 * Math.fround(draw()))
            return [key, new Tensor('float32', data, shape)]
          }),
        )
        // What the factors stand for at the start: a step of rate 0.
        const still = { ...options, learningRate: 0, weightDecay: 0, responses: items.length }
        await learner.accumulate(new Map([...base, ...adapter]), head, lessons)
        let { weights } = await learner.updateAdapter(base, adapter, initialState(adapter), still)

        const state = initialState(adapter)
        for (const [step, norm] of gradientNorms.entries()) {
          const found = await learner.accumulate(new Map([...weights, ...adapter]), head, lessons)
          if (step === 0) {
            assertClose('losses', found.losses, losses)
            const gradients = tensors(`${name}.gradient.`)
            assert.deepEqual([...gradients.keys()].sort(), [...adapter.keys()].sort())
            for (const [key, gradient] of gradients) assertClose(key, learner.gradient(key)!, f32(gradient))
            assert.equal(learner.gradient('model.norm.weight'), null)
          }
          const given = { ...options, responses: items.length }
          const updated = await learner.updateAdapter(base, adapter, state, given)
          assertClose(`norm of step ${step}`, [updated.gradientNorm], [norm])
          ;({ weights, adapter } = updated)
        }
        for (const [key, tensor] of tensors(`${name}.stepped.`)) {
          assertClose(`stepped ${key}`, f32(adapter.get(key)!), f32(tensor))
        }
        for (const [key, tensor] of tensors(`${name}.merged.`)) {
          assertClose(`merged ${key}`, f32(weights.get(key)!), f32(tensor))
        }
        assert.equal(
          weights.get('model.norm.weight'),
          base.get('model.norm.weight'),
          'frozen weights are shared',
        )
        assert.deepEqual([...state.m.keys()], [...adapter.keys()], 'moments of the factors alone')
        await learner.close()
      })
    }
  })
}
