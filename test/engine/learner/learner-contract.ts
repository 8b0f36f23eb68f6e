import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import type { Tensor } from 'onnxruntime-node'
import type { ModelConfig } from '../../../engine/architectures/config.ts'
import type { HeadInput, TokenNumbers } from '../../../engine/learner/head.ts'
import type { LearnerOptions } from '../../../engine/learner/learner.ts'
import type { Sequence } from '../../../engine/learner/work.ts'
import type { Accumulated, TrainItem, UpdateOptions } from '../../../engine/port.ts'
import { headName } from '../../../engine/weights/parameter-shapes.ts'
import type { Weights } from '../../../engine/weights/weights.ts'
import { GraspError } from '../../../errors/grasp-error.ts'
import { readGolden } from '../../golden/golden.ts'
import { assertClose } from './close-to.ts'
import { dense, factored, responseSequence, topk } from './items.ts'

const options = {
  responses: 3,
  learningRate: 1e-2,
  betas: [0.9, 0.99],
  epsilon: 1e-8,
  weightDecay: 0,
  clip: Number.POSITIVE_INFINITY,
} as const

/** A learner behind which weights may be anywhere; those given and returned are on the CPU. */
export interface TestLearner {
  hiddenStates(weights: Weights, sequences: readonly Sequence[]): Promise<Float32Array[]>
  numbers(student: HeadInput, teacher: HeadInput, observed: Int32Array): Promise<TokenNumbers>
  logits(input: HeadInput): Promise<Float32Array>
  accumulate(weights: Weights, teacherHead: Tensor, items: readonly TrainItem[]): Promise<Accumulated>
  gradient(parameter: string): Promise<Float32Array | null>
  discard(): void
  /** AdamW; its state is the learner's. */
  update(weights: Weights, options: UpdateOptions): Promise<{ weights: Weights }>
  close(): Promise<void>
}

export type OpenLearner = (
  config: ModelConfig,
  options: Omit<LearnerOptions, 'lora' | 'profile'>,
) => Promise<TestLearner>

/** What every learner must do. */
export function learnerContract(name: string, open: OpenLearner): void {
  describe(name, () => {
    let config: ModelConfig
    let learner: TestLearner
    let student: Weights
    let teacher: Weights
    let head: Tensor
    let prompts: Int32Array[]
    let responses: Int32Array[]
    let teacherHidden: Float32Array[]

    before(async () => {
      const golden = await readGolden('llama-untied')
      config = golden.config
      student = golden.tensors('student')
      teacher = golden.tensors('teacher')
      head = teacher.get(headName(config))!
      learner = await open(config, { threads: 2, tokensPerPass: 64 })
      prompts = golden.items.map(item => item.prompt)
      responses = golden.items.map(item => item.response)
      teacherHidden = await learner.hiddenStates(
        teacher,
        golden.items.map(item => responseSequence(item.teacherPrompt, item.response)),
      )
    })
    after(() => learner.close())

    function distil(index: number): TrainItem {
      const data = factored(teacherHidden[index]!, config.hiddenSize)
      return { loss: 'forward-kl', prompt: prompts[index]!, response: responses[index]!, teacher: data }
    }

    const all = () => [0, 1, 2].map(distil)

    /** All gradients after accumulating the calls' items. */
    async function gradients(calls: readonly TrainItem[][], by = learner, weights = student) {
      const losses: number[] = []
      for (const items of calls) losses.push(...(await by.accumulate(weights, head, items)).losses)
      const sums = new Map<string, Float32Array>()
      for (const name of weights.keys()) sums.set(name, (await by.gradient(name))!.slice())
      by.discard()
      return { losses, sums }
    }

    function assertSame(
      got: Awaited<ReturnType<typeof gradients>>,
      expected: typeof got,
      tolerance: number,
    ): void {
      assertClose('losses', got.losses, expected.losses, tolerance)
      for (const [name, sum] of expected.sums) assertClose(name, got.sums.get(name)!, sum, tolerance)
    }

    async function numbers(index: number, weights: Weights, prompt: Int32Array) {
      const [hidden] = await learner.hiddenStates(weights, [responseSequence(prompt, responses[index]!)])
      const teacherSide = { hidden: teacherHidden[index]!, head }
      return learner.numbers(
        { hidden: hidden!, head: weights.get(headName(config))! },
        teacherSide,
        responses[index]!,
      )
    }

    describe('identity', () => {
      it('same prompt and weights on both sides: KL < 1e-6, loss and gradient vanish', async () => {
        const [hidden] = await learner.hiddenStates(teacher, [responseSequence(prompts[1]!, responses[1]!)])
        const side = { hidden: hidden!, head }
        const { kl, studentLogp, teacherLogp } = await learner.numbers(side, side, responses[1]!)
        for (const value of kl) assert(value >= 0 && value < 1e-6)
        assert.deepEqual(studentLogp, teacherLogp)
        const item: TrainItem = {
          loss: 'forward-kl',
          prompt: prompts[1]!,
          response: responses[1]!,
          teacher: factored(hidden!, config.hiddenSize),
        }
        const { losses, sums } = await gradients([[item]], learner, teacher)
        assert(losses[0]! >= 0 && losses[0]! < 1e-6)
        for (const sum of sums.values()) assert(sum.every(value => Math.abs(value) < 1e-5))
      })
    })

    describe('microbatches', () => {
      it('1, 2 or 4 calls of unequal lengths give the same gradient', async () => {
        const items = [...all(), distil(1)]
        const whole = await gradients([items])
        assertSame(await gradients([items.slice(0, 1), items.slice(1)]), whole, 1e-5)
        assertSame(await gradients(items.map(item => [item])), whole, 1e-5)
      })

      it('passes of any size give the same gradient: padding and batching do not reach it', async () => {
        const whole = await gradients([all()])
        for (const tokensPerPass of [1, 16, 4096]) {
          const other = await open(config, { threads: 1, tokensPerPass })
          assertSame(await gradients([all()], other), whole, 1e-5)
          await other.close()
        }
      })

      it('keeping activations or computing them again gives the same bits', async () => {
        const kept = await gradients([all()])
        // Of the 24 tokens in one pass, a layer's activations take 21 kB: 30 kB hold one of the two layers'.
        for (const activationBytes of [0, 30_000]) {
          const other = await open(config, { threads: 2, tokensPerPass: 64, activationBytes })
          assert.deepEqual(await gradients([all()], other), kept)
          await other.close()
        }
      })

      it('sequences of one token, alone or with others', async () => {
        const item = (index: number, response: number[]): TrainItem => ({
          loss: 'cross-entropy',
          prompt: prompts[index]!.subarray(0, 1),
          response: Int32Array.from(response),
        })
        const items = [item(0, [5]), item(1, [6, 7, 8, 9, 10]), item(2, [7, 3])]
        const alone = await gradients(items.map(one => [one]))
        assert(alone.losses.every(loss => loss > 0 && Number.isFinite(loss)))
        assertSame(await gradients([items]), alone, 1e-5)
        const sequences = [1, 2, 3].map(count => ({ ids: prompts[2]!.subarray(0, count), from: 0, count }))
        const [one, two, three] = await learner.hiddenStates(student, sequences)
        assertClose('one token', one!, three!.subarray(0, config.hiddenSize), 1e-5)
        assertClose('two tokens', two!, three!.subarray(0, 2 * config.hiddenSize), 1e-5)
      })

      it('hidden states do not depend on what shares the pass', async () => {
        const sequences = prompts.map((prompt, index) => responseSequence(prompt, responses[index]!))
        const together = await learner.hiddenStates(student, sequences)
        for (const [index, sequence] of sequences.entries()) {
          const [alone] = await learner.hiddenStates(student, [sequence])
          assertClose(`sequence ${index}`, together[index]!, alone!, 1e-6)
        }
      })
    })

    it('the loss is the mean over the tokens of a response; the gradient sums responses', async () => {
      const { losses } = await learner.accumulate(student, head, all())
      learner.discard()
      for (const index of [0, 1, 2]) {
        const { kl } = await numbers(index, student, prompts[index]!)
        assertClose(
          `loss ${index}`,
          [losses[index]!],
          [kl.reduce((sum, value) => sum + value, 0) / kl.length],
          1e-6,
        )
      }
      const apart = [await gradients([[distil(0)]]), await gradients([[distil(1)]])]
      const both = await gradients([[distil(0), distil(1)]])
      for (const [name, sum] of both.sums) {
        const expected = apart[0]!.sums.get(name)!.map((value, i) => value + apart[1]!.sums.get(name)![i]!)
        assertClose(name, sum, expected, 1e-5)
      }
    })

    it('chunked equals whole: numbers and logits of many tokens in one call and one by one', async () => {
      const response = Int32Array.from({ length: 48 }, (_, index) => (index * 7) % config.vocabularySize)
      const sequence = responseSequence(prompts[0]!, response)
      const [[studentHidden], [other]] = [
        await learner.hiddenStates(student, [sequence]),
        await learner.hiddenStates(teacher, [sequence]),
      ]
      const small = await open(config, { threads: 1, tokensPerPass: 64, chunkTokens: 5 })
      const sides = [
        { hidden: studentHidden!, head: student.get(headName(config))! },
        { hidden: other!, head },
      ] as const
      const whole = await learner.numbers(...sides, response)
      const chunked = await small.numbers(...sides, response)
      for (const key of ['studentLse', 'teacherLse', 'studentLogp', 'teacherLogp', 'kl'] as const) {
        assertClose(key, chunked[key], whole[key], 1e-6)
      }
      assertClose('logits', await small.logits(sides[0]), await learner.logits(sides[0]), 1e-6)
      const item: TrainItem = {
        loss: 'forward-kl',
        prompt: prompts[0]!,
        response,
        teacher: factored(other!, config.hiddenSize),
      }
      assertSame(await gradients([[item]], small), await gradients([[item]]), 1e-5)
      await small.close()
    })

    describe('tokens', () => {
      it('row t predicts response token t: changing a token changes its own loss and those after, none before', async () => {
        const { studentLogp } = await numbers(1, student, prompts[1]!)
        const changed = responses[1]!.slice()
        changed[3] = (changed[3]! + 1) % config.vocabularySize
        const [hidden] = await learner.hiddenStates(student, [responseSequence(prompts[1]!, changed)])
        const side = { hidden: hidden!, head: student.get(headName(config))! }
        const { studentLogp: other } = await learner.numbers(side, side, changed)
        assert.deepEqual(other.subarray(0, 3), studentLogp.subarray(0, 3))
        assert.notEqual(other[3], studentLogp[3])
        assert.notEqual(other[4], studentLogp[4])
      })

      it('log-probabilities are log-softmax of the logits at the observed token', async () => {
        const { studentLogp, studentLse } = await numbers(0, student, prompts[0]!)
        const [hidden] = await learner.hiddenStates(student, [responseSequence(prompts[0]!, responses[0]!)])
        const logits = await learner.logits({ hidden: hidden!, head: student.get(headName(config))! })
        for (const [token, id] of responses[0]!.entries()) {
          const row = logits.subarray(token * config.vocabularySize, (token + 1) * config.vocabularySize)
          const lse = Math.log(row.reduce((sum, value) => sum + Math.exp(value), 0))
          assertClose('lse', [studentLse[token]!], [lse], 1e-6)
          assertClose('logp', [studentLogp[token]!], [row[id]! - lse], 1e-5)
        }
      })

      it('the end-of-sequence token carries loss, also when padding has the same id', async () => {
        // Padding is embedded as zeros and never looked up, so an id that happens to be the padding id is a token.
        const eos = 0
        const ends: TrainItem = {
          loss: 'cross-entropy',
          prompt: prompts[0]!,
          response: Int32Array.from([...responses[0]!, eos]),
        }
        const longer: TrainItem = {
          loss: 'cross-entropy',
          prompt: prompts[2]!,
          response: Int32Array.from({ length: 12 }, (_, i) => i),
        }
        const { losses, tokens } = await learner.accumulate(student, head, [ends, longer])
        learner.discard()
        assert.equal(tokens, responses[0]!.length + 1 + 12)
        const [hidden] = await learner.hiddenStates(student, [responseSequence(ends.prompt, ends.response)])
        const side = { hidden: hidden!, head: student.get(headName(config))! }
        const { studentLogp } = await learner.numbers(side, side, ends.response)
        assertClose(
          'loss',
          [losses[0]!],
          [-studentLogp.reduce((sum, value) => sum + value, 0) / ends.response.length],
          1e-6,
        )
        assert(studentLogp.at(-1)! < -1e-3)
        const { sums } = await gradients([[ends]])
        const { sums: without } = await gradients([[{ ...ends, response: responses[0]! }]])
        assert.notDeepEqual(sums.get('lm_head.weight'), without.get('lm_head.weight'))
      })

      it('the last response token is predicted but never read', async () => {
        const response = responses[1]!.slice()
        const item = (last: number): TrainItem => {
          response[response.length - 1] = last
          return { ...distil(1), response: response.slice() } as TrainItem
        }
        // The teacher's distribution is a constant: forward KL then does not depend on the last observed token.
        assertSame(await gradients([[item(1)]]), await gradients([[item(2)]]), 0)
      })
    })

    describe('teachers', () => {
      it('factored, dense and topk with k = V give the same losses and gradients', async () => {
        const whole = await gradients([all()])
        for (const encode of [
          (logits: Float32Array) => dense(logits, config.vocabularySize),
          (logits: Float32Array) => topk(logits, config.vocabularySize, config.vocabularySize),
        ]) {
          const items: TrainItem[] = []
          for (const index of [0, 1, 2]) {
            const logits = await learner.logits({ hidden: teacherHidden[index]!, head })
            items.push({ ...distil(index), teacher: encode(logits) } as TrainItem)
          }
          assertSame(await gradients([items]), whole, 1e-5)
        }
      })

      it('the gradient changes when the teacher changes', async () => {
        const other: TrainItem = {
          ...distil(0),
          teacher: factored(
            teacherHidden[0]!.map(value => -value),
            config.hiddenSize,
          ),
        } as TrainItem
        const [a, b] = [await gradients([[distil(0)]]), await gradients([[other]])]
        assert.notDeepEqual(a.sums.get('model.norm.weight'), b.sums.get('model.norm.weight'))
      })

      it('mixed encodings and losses in one call', async () => {
        const logits = await learner.logits({ hidden: teacherHidden[1]!, head })
        const items: TrainItem[] = [
          distil(0),
          { ...distil(1), teacher: topk(logits, config.vocabularySize, 5) } as TrainItem,
          { loss: 'cross-entropy', prompt: prompts[2]!, response: responses[2]! },
          { ...distil(1), teacher: topk(logits, config.vocabularySize, 9) } as TrainItem,
        ]
        assertSame(await gradients([items]), await gradients(items.map(item => [item])), 1e-5)
      })

      it('slices that do not fit are refused and add nothing', async () => {
        const before = await gradients([[distil(0)]])
        const short = factored(teacherHidden[0]!.subarray(config.hiddenSize), config.hiddenSize)
        const wide = factored(teacherHidden[0]!, config.hiddenSize / 2)
        const foreign = { ...topk(new Float32Array(4 * config.vocabularySize), config.vocabularySize, 2) }
        foreign.ids!.fill(255)
        const whole = factored(teacherHidden[0]!, config.hiddenSize)
        const cutOff = { ...whole, data: whole.data.subarray(1) }
        for (const bad of [short, wide, foreign, cutOff]) {
          const item = { ...distil(0), teacher: bad } as TrainItem
          await assert.rejects(learner.accumulate(student, head, [distil(0), item]), {
            code: 'SLICE_MISMATCH',
          })
        }
        assertSame(await gradients([[distil(0)]]), before, 0)
      })
    })

    describe('nothing to learn', () => {
      it('no items, empty responses, an empty response among others', async () => {
        const empty = {
          ...distil(0),
          response: new Int32Array(0),
          teacher: factored(new Float32Array(0), config.hiddenSize),
        } as TrainItem
        assert.deepEqual(await learner.accumulate(student, head, []), {
          losses: new Float64Array(0),
          tokens: 0,
        })
        assert.deepEqual(await learner.accumulate(student, head, [empty, empty]), {
          losses: new Float64Array(2),
          tokens: 0,
        })
        for (const name of student.keys()) {
          assert((await learner.gradient(name))!.every(value => value === 0))
        }
        const mixed = await gradients([[empty, distil(1)]])
        const alone = await gradients([[distil(1)]])
        assert.equal(mixed.losses[0], 0)
        assert.deepEqual(mixed.sums, alone.sums)
      })

      it('hidden states of no sequences, and of no rows', async () => {
        assert.deepEqual(await learner.hiddenStates(student, []), [])
        assert.deepEqual(await learner.hiddenStates(student, [{ ids: prompts[0]!, from: 0, count: 0 }]), [
          new Float32Array(0),
        ])
      })

      it('update without anything accumulated is refused', async () => {
        await assert.rejects(learner.update(student, { ...options, responses: 0 }), { code: 'ENGINE_FAILED' })
      })
    })

    describe('input is checked', () => {
      it('token ids outside the vocabulary, empty prompts, too long sequences', async () => {
        const item = (prompt: number[], response: number[]): TrainItem => ({
          loss: 'cross-entropy',
          prompt: Int32Array.from(prompt),
          response: Int32Array.from(response),
        })
        await assert.rejects(learner.accumulate(student, head, [item([config.vocabularySize], [1])]), {
          code: 'RECORD_INVALID',
        })
        await assert.rejects(learner.accumulate(student, head, [item([1], [-1])]), { code: 'RECORD_INVALID' })
        await assert.rejects(learner.accumulate(student, head, [item([], [1])]), { code: 'RECORD_INVALID' })
        const long = item(
          Array.from({ length: 60 }, () => 1),
          Array.from({ length: 6 }, () => 1),
        )
        await assert.rejects(learner.accumulate(student, head, [long]), (error: unknown) => {
          assert(error instanceof GraspError && error.code === 'PROMPT_TOO_LONG')
          assert.match(error.message, /65 tokens.*64/)
          return true
        })
      })
    })

    it('hidden states of rows that a sequence lacks are refused', async () => {
      for (const [from, count] of [
        [-1, 2],
        [3, 9],
      ] as const) {
        const asked = learner.hiddenStates(student, [{ ids: prompts[0]!, from, count }])
        await assert.rejects(asked, { code: 'RECORD_INVALID' })
      }
      const foreign = learner.hiddenStates(student, [
        { ids: Int32Array.of(1, config.vocabularySize), from: 0, count: 1 },
      ])
      await assert.rejects(foreign, { code: 'RECORD_INVALID' })
    })

    it('distillation lowers the KL', async () => {
      let weights = student
      const losses: number[] = []
      for (let step = 0; step < 20; step++) {
        const result = await learner.accumulate(weights, head, all())
        losses.push(result.losses.reduce((sum, value) => sum + value, 0))
        weights = (await learner.update(weights, options)).weights
      }
      assert(losses.at(-1)! < 0.5 * losses[0]!, losses.join(' '))
    })
  })
}
