/** What every engine behind the port must do. */
import assert from 'node:assert/strict'
import { mkdir, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, describe, it } from 'node:test'
import type {
  DeviceKind,
  Engine,
  EngineOptions,
  SamplingOptions,
  Scored,
  ScoreItem,
  UpdateOptions,
} from '../../engine/port.ts'
import { makeTinyModel, type TinyModel } from '../helpers/tiny-model.ts'

type Open = (options: EngineOptions) => Promise<Engine>

const SAMPLING: SamplingOptions = {
  temperature: 1,
  topK: 0,
  topP: 1,
  minP: 0,
  stop: [],
  maxNewTokens: 12,
  seed: 5,
}
const UPDATE: UpdateOptions = {
  responses: 3,
  learningRate: 1e-2,
  betas: [0.9, 0.95],
  epsilon: 1e-8,
  weightDecay: 0.1,
  clip: 1,
}

export function engineContract(name: string, open: Open, device: DeviceKind = 'cpu'): void {
  describe(name, () => {
    let folder: string
    let model: TinyModel
    let engine: Engine
    let items: ScoreItem[]
    const opened: Engine[] = []

    const openModel = async (path = model.path, keepPolicies = 1) => {
      const made = await open({
        path,
        device,
        threads: 2,
        keepPolicies,
        tokensPerPass: 512,
        sequencesPerPass: 8,
      })
      opened.push(made)
      return made
    }

    before(async () => {
      folder = await mkdtemp(join(tmpdir(), 'grasp-engine-'))
      model = await makeTinyModel()
      engine = await openModel()
      items = await sampled(engine)
    })
    after(async () => {
      for (const each of opened) await each.close()
      await model.remove()
      await rm(folder, { recursive: true })
    })

    it('tells what it holds', async () => {
      const info = await engine.info()
      const { weightsHash, tokenizerHash, templateHash, teacherHead, ...facts } = info
      assert.deepEqual(facts, {
        architecture: 'llama',
        parameters: 30880,
        layers: 2,
        hiddenSize: 32,
        vocabularySize: 288,
        contextLength: 256,
        stopTokens: [2],
        device,
        threads: 2,
      })
      for (const hash of [weightsHash, tokenizerHash, templateHash, teacherHead])
        assert.match(hash, /^[0-9a-f]{64}$/)
      assert.equal(await engine.weightsHash('teacher'), weightsHash)
    })

    it('encodes a chat and decodes ids', async () => {
      const ids = await engine.encodeChat([{ role: 'user', content: 'the hen ☂' }])
      assert.ok(ids instanceof Int32Array)
      assert.equal(await engine.decode(ids), 'user\nthe hen ☂\nassistant\n')
    })

    it('samples by seed, key and policy, in the order of the prompts', async () => {
      const prompts = items.map(({ studentPrompt }, i) => ({ key: `item ${i}`, ids: studentPrompt }))
      const first = await engine.generate(0, prompts, SAMPLING)
      assert.deepEqual(
        first.map(({ ids }) => ids),
        items.map(({ response }) => response),
      )
      const reversed = await engine.generate(0, prompts.toReversed(), SAMPLING)
      assert.deepEqual(reversed.toReversed(), first)
      const teacher = await engine.generate('teacher', prompts, SAMPLING)
      assert.notDeepEqual(teacher, first)
      assert.notDeepEqual(await engine.generate(0, prompts, { ...SAMPLING, seed: 6 }), first)
      const greedy = { ...SAMPLING, temperature: 0 }
      assert.deepEqual(
        await engine.generate('teacher', prompts, greedy),
        await engine.generate(0, prompts, greedy),
      )
    })

    it('samples several responses of one prompt: unlike each other, the same alone and among others', async () => {
      const prompts = items.map(({ studentPrompt }, i) => ({ key: `item ${i}`, ids: studentPrompt }))
      const one = await engine.generate(0, prompts, SAMPLING)
      // More than fit at once.
      const [first, second] = [
        { ...prompts[0]!, samples: 11 },
        { ...prompts[1]!, samples: 2 },
      ]
      const several = await engine.generate(0, [first, prompts[2]!, second], SAMPLING)
      assert.equal(several.length, 14)
      assert.deepEqual([several[0], several[11], several[12]], [one[0], one[2], one[1]])
      assert.equal(new Set(several.slice(0, 11).map(({ ids }) => ids.join())).size, 11)
      assert.deepEqual(await engine.generate(0, [second], SAMPLING), several.slice(12))
      await assert.rejects(engine.generate(0, [{ ...first, samples: 0 }], SAMPLING), {
        code: 'CONFIG_INVALID',
        message: /samples of item 0 is 0, expected a whole number from 1/,
      })
    })

    it('ends a response with the token that completes a stop string, and keeps its ids', async () => {
      const prompts = items.map(({ studentPrompt }, i) => ({ key: `item ${i}`, ids: studentPrompt }))
      const free = await engine.generate(0, prompts, { ...SAMPLING, maxNewTokens: 60 })
      // Of several characters that are whole: this model also writes bytes that are none.
      const texts = (await engine.decode(free[0]!.ids)).match(/[^\uFFFD]{2,4}/g)!
      const stop = [texts.at(-2)!]
      const stopped = await engine.generate(0, prompts, { ...SAMPLING, maxNewTokens: 60, stop })
      for (const [i, { ids, logp, finish }] of stopped.entries()) {
        const whole = free[i]!
        assert.deepEqual(ids, whole.ids.subarray(0, ids.length))
        assert.deepEqual(logp, whole.logp.subarray(0, ids.length))
        const found = (await engine.decode(ids)).includes(stop[0]!)
        assert.equal(found, (await engine.decode(whole.ids)).includes(stop[0]!))
        assert.equal((await engine.decode(ids.subarray(0, -1))).includes(stop[0]!), false)
        if (found) assert.equal(finish, 'stop')
        else assert.deepEqual(stopped[i], whole)
      }
      assert.ok(stopped[0]!.ids.length < free[0]!.ids.length && stopped[0]!.ids.length > 5)
      await assert.rejects(engine.generate(0, prompts, { ...SAMPLING, stop: [''] }), {
        code: 'CONFIG_INVALID',
        message: /stop\[0\] is ""/,
      })
    })

    it('scores responses with the log-probabilities that sampling saw', async () => {
      const prompts = items.map(({ studentPrompt }, i) => ({ key: `item ${i}`, ids: studentPrompt }))
      const generations = await engine.generate(0, prompts, SAMPLING)
      const scored = await engine.score(items, { policyVersion: 0, encoding: 'factored', dtype: 'f32' })
      scored.forEach(({ student, kl }, i) => {
        assert.equal(kl.length, items[i]!.response.length)
        student.logp.forEach((logp, t) => {
          assert.ok(Math.abs(logp - generations[i]!.logp[t]!) < 2e-5)
        })
      })
    })

    it('finds no divergence between the same prompts, and never a negative one', async () => {
      const same = items.map(item => ({ ...item, teacherPrompt: item.studentPrompt }))
      const options = { policyVersion: 0, encoding: 'factored', dtype: 'f32' } as const
      for (const { kl } of await engine.score(same, options)) for (const nats of kl) assert.ok(nats < 1e-6)
      const differing = await engine.score(items, options)
      for (const { kl } of differing) for (const nats of kl) assert.ok(nats >= 0)
      assert.ok(differing.some(({ kl }) => kl.some(nats => nats > 0.01)))
    })

    it('gives the same numbers with every encoding and dtype', async () => {
      const base = await engine.score(items, { policyVersion: 0, encoding: 'factored', dtype: 'f32' })
      for (const encoding of ['factored', 'dense', 'topk'] as const) {
        for (const dtype of ['f32', 'f16', 'bf16'] as const) {
          const scored = await engine.score(items, { policyVersion: 0, encoding, dtype, k: 9 })
          scored.forEach((pair, i) => {
            assert.deepEqual(numbers(pair), numbers(base[i]!))
            const width = { factored: 32, dense: 288, topk: 9 }[encoding]
            const bytes = pair.kl.length * width * (dtype === 'f32' ? 4 : 2)
            for (const side of [pair.student, pair.teacher]) {
              assert.deepEqual([side.encoding, side.dtype, side.width], [encoding, dtype, width])
              assert.equal(side.data.length, bytes)
            }
          })
        }
      }
      const only = await engine.score(items, {
        policyVersion: 0,
        encoding: 'dense',
        dtype: 'f32',
        numbersOnly: true,
      })
      assert.deepEqual(only.map(numbers), base.map(numbers))
      assert.equal(only[0]!.teacher.data.length, 0)
    })

    it('encodes dense logits whose softmax gives the numbers, and their greatest k', async () => {
      const options = { policyVersion: 0, dtype: 'f32', k: 9 } as const
      const [dense] = await engine.score(items, { ...options, encoding: 'dense' })
      const [top] = await engine.score(items, { ...options, encoding: 'topk' })
      const student = rows(dense!.student.data, 288)
      const teacher = rows(dense!.teacher.data, 288)
      const topLogits = rows(top!.teacher.data, 9)
      const topIds = new Uint32Array(Uint8Array.from(top!.teacher.ids!).buffer)
      for (const [t, token] of items[0]!.response.entries()) {
        const [s, q] = [logSoftmax(student[t]!), logSoftmax(teacher[t]!)]
        close(dense!.student.logp[t]!, s[token]!)
        close(dense!.teacher.logp[t]!, q[token]!)
        close(dense!.teacher.lse[t]!, teacher[t]![token]! - q[token]!)
        close(
          dense!.kl[t]!,
          q.reduce((sum, logQ, id) => sum + Math.exp(logQ) * (logQ - s[id]!), 0),
        )
        const order = [...q.keys()].sort((a, b) => q[b]! - q[a]!).slice(0, 9)
        assert.deepEqual([...topIds.subarray(t * 9, t * 9 + 9)], order)
        assert.deepEqual(
          [...topLogits[t]!],
          order.map(id => teacher[t]![id]!),
        )
      }
      const whole = await engine.score(items, { ...options, encoding: 'topk', k: 288 })
      assert.ok(whole[0]!.truncation! < 1e-5)
      assert.ok(top!.truncation! > whole[0]!.truncation!)
    })

    it('learns: an update makes the next version and leaves the teacher alone', async () => {
      const student = await openModel()
      const before = await student.weightsHash('teacher')
      const first = await step(student, items)
      const version1 = await student.weightsHash(1)
      assert.equal(first.version, 1)
      assert.equal(first.weightsHash, version1)
      assert.notEqual(version1, before)
      assert.ok(first.gradientNorm > 0)
      let last = first
      for (let i = 0; i < 6; i++) last = await step(student, items)
      assert.ok(last.loss < 0.5 * first.loss, `loss ${first.loss} to ${last.loss}`)
      assert.equal(await student.policyVersion(), 7)
      assert.equal(await student.weightsHash('teacher'), before)
      await student.weightsHash(6)
      await assert.rejects(student.generate(5, [], SAMPLING), {
        code: 'ENGINE_FAILED',
        message: /held: 6, 7/,
      })
    })

    it('makes a version of the same weights of an update without responses', async () => {
      const student = await openModel()
      const nothing = await student.update({ ...UPDATE, responses: 0 })
      assert.deepEqual(nothing, { version: 1, gradientNorm: 0, weightsHash: await student.weightsHash(0) })
      assert.notEqual((await step(student, items)).weightsHash, nothing.weightsHash)
    })

    it('has losses that are the means of the KL it scored', async () => {
      const scored = await engine.score(items, { policyVersion: 0, encoding: 'factored', dtype: 'f32' })
      const { losses, tokens } = await engine.accumulate(lessons(items, scored))
      scored.forEach(({ kl }, i) => {
        close(losses[i]!, kl.reduce((sum, nats) => sum + nats, 0) / kl.length)
      })
      assert.equal(
        tokens,
        items.reduce((sum, { response }) => sum + response.length, 0),
      )
      await engine.discard()
      await assert.rejects(engine.update(UPDATE), { code: 'ENGINE_FAILED' })
    })

    it('goes on from a checkpoint with the same bits', async () => {
      const path = join(folder, 'checkpoint')
      const one = await openModel()
      for (let i = 0; i < 2; i++) await step(one, items)
      await one.saveCheckpoint(path, { positions: [3, 4], note: '☂' })
      const expected = [await step(one, items), await step(one, items)]
      const kept = await one.generate(2, [], SAMPLING).then(
        () => assert.fail('version 2 is dropped'),
        (error: unknown) => error,
      )
      assert.ok(kept instanceof Error)

      const other = await openModel()
      await step(other, items.slice(0, 1))
      await other.accumulate([
        { loss: 'cross-entropy', prompt: items[0]!.studentPrompt, response: items[0]!.response },
      ])
      assert.deepEqual(await other.loadCheckpoint(path), { positions: [3, 4], note: '☂' })
      assert.equal(await other.policyVersion(), 2)
      assert.notEqual(await other.weightsHash(1), await other.weightsHash(2))
      assert.deepEqual([await step(other, items), await step(other, items)], expected)
      // The engine that saved can go back as well.
      await one.loadCheckpoint(path)
      assert.deepEqual(await step(one, items), expected[0])
    })

    it('replaces a checkpoint, and one from before the first update serves too', async () => {
      const path = join(folder, 'again')
      const student = await openModel()
      await student.saveCheckpoint(path, null)
      const expected = await step(student, items)
      await student.saveCheckpoint(path, 'later')
      assert.deepEqual(
        (await readdir(folder)).filter(entry => entry.startsWith('again')),
        ['again'],
      )
      assert.equal(await student.loadCheckpoint(path), 'later')
      assert.equal(await student.weightsHash(1), expected.weightsHash)
      await student.saveCheckpoint(path, undefined)
      assert.equal(await student.loadCheckpoint(path), null)
    })

    it('refuses a checkpoint that is damaged or belongs to another model', async () => {
      const path = join(folder, 'damaged')
      const student = await openModel()
      for (let i = 0; i < 2; i++) await step(student, items)
      await student.saveCheckpoint(path, null)
      const refused = (message: RegExp) =>
        assert.rejects(student.loadCheckpoint(path), { code: 'CHECKPOINT_INVALID', message })
      for (const file of [
        'model.safetensors',
        'optimizer.safetensors',
        'policies/1.safetensors',
        'tokenizer.json',
        'config.json',
        'state.json',
      ]) {
        const whole = await readFile(join(path, file))
        const damaged = Buffer.from(whole)
        damaged[damaged.length >> 1]! ^= 1
        await writeFile(join(path, file), damaged)
        await refused(new RegExp(`${file}.*Remove the folder of this checkpoint`))
        await rm(join(path, file))
        await refused(new RegExp(`${file}.*Remove the folder of this checkpoint`))
        await writeFile(join(path, file), whole)
      }
      assert.equal(await student.policyVersion(), 2)
      assert.equal(await student.loadCheckpoint(path), null)
      await assert.rejects(student.loadCheckpoint(join(folder, 'absent')), { code: 'CHECKPOINT_INVALID' })

      const stranger = await makeTinyModel({ seed: 9 })
      const other = await openModel(stranger.path)
      await assert.rejects(other.loadCheckpoint(path), {
        code: 'CHECKPOINT_INVALID',
        message: /another model/,
      })
      await stranger.remove()
    })

    it('exports a policy as a model of its own', async () => {
      const student = await openModel()
      const { weightsHash } = await step(student, items)
      const exact = join(folder, 'exact')
      await student.exportPolicy(1, exact, 'f32')
      const exported = await openModel(exact)
      assert.equal(await exported.weightsHash('teacher'), weightsHash)
      const [before, after] = [await engine.info(), await exported.info()]
      assert.equal(after.tokenizerHash, before.tokenizerHash)
      assert.equal(after.templateHash, before.templateHash)

      const rounded = join(folder, 'rounded')
      await student.exportPolicy('teacher', rounded, 'bf16')
      assert.equal(JSON.parse(await readFile(join(rounded, 'config.json'), 'utf8')).torch_dtype, 'bfloat16')
      const half = await openModel(rounded)
      assert.notEqual(await half.weightsHash('teacher'), before.weightsHash)
      const prompts = [{ key: 'a', ids: items[0]!.studentPrompt }]
      const [expected] = await engine.generate('teacher', prompts, { ...SAMPLING, maxNewTokens: 1 })
      const [found] = await half.generate('teacher', prompts, { ...SAMPLING, maxNewTokens: 1 })
      assert.ok(Math.abs(found!.logp[0]! - expected!.logp[0]!) < 0.1)
    })

    it("does not write over somebody else's folder", async () => {
      const path = join(folder, 'holiday pictures')
      await mkdir(path)
      await writeFile(join(path, 'beach.jpg'), '')
      const refused = { code: 'ENGINE_FAILED', message: /holds other files \(beach.jpg\)/ }
      await assert.rejects(engine.saveCheckpoint(path, null), refused)
      await assert.rejects(engine.exportPolicy('teacher', path, 'f32'), refused)
      const replacing = engine.exportPolicy('teacher', path, 'f32', { replace: true })
      await assert.rejects(replacing, { code: 'ENGINE_FAILED', message: /holds other files \(beach.jpg\)/ })
      assert.deepEqual(await readdir(path), ['beach.jpg'])
      const own = join(folder, 'exported')
      await engine.exportPolicy('teacher', own, 'f32')
      await assert.rejects(engine.exportPolicy('teacher', own, 'f32'), { code: 'ENGINE_FAILED' })
      await engine.exportPolicy('teacher', own, 'f32', { replace: true })
      await writeFile(join(folder, 'file'), '')
      await assert.rejects(engine.saveCheckpoint(join(folder, 'file', 'inside'), null), {
        code: 'ENGINE_FAILED',
      })
    })

    it('runs calls in the order they are made', async () => {
      const student = await openModel()
      const scored = await engine.score(items, { policyVersion: 0, encoding: 'factored', dtype: 'f32' })
      const calls = [
        student.accumulate(lessons(items, scored)),
        student.update(UPDATE),
        student.policyVersion(),
        student.generate(5, [], SAMPLING).catch(error => error.code),
        student.accumulate(lessons(items, scored)),
        student.update(UPDATE),
        student.policyVersion(),
      ]
      const results = await Promise.all(calls)
      assert.equal(results[2], 1)
      assert.equal(results[3], 'ENGINE_FAILED')
      assert.equal(results[6], 2)
    })

    it('encodes and decodes while it generates', async () => {
      const done: string[] = []
      const prompts = items.map(({ studentPrompt }, i) => ({ key: `item ${i}`, ids: studentPrompt }))
      await Promise.all([
        // Long enough not to be over before a busy machine has passed on the other calls.
        engine.generate(0, prompts, { ...SAMPLING, maxNewTokens: 60 }).then(() => done.push('generate')),
        engine.encodeChat([{ role: 'user', content: 'the hen' }]).then(() => done.push('encodeChat')),
        engine.decode(Int32Array.of(5)).then(() => done.push('decode')),
      ])
      assert.equal(done.at(-1), 'generate')
    })

    it('is told to sample and score no more, in the middle of it, and trains on', async () => {
      const student = await openModel()
      const scored = await student.score(items, { policyVersion: 0, encoding: 'factored', dtype: 'f32' })
      const many = Array.from({ length: 200 }, (_, i) => ({ key: `${i}`, ids: items[0]!.studentPrompt }))
      const interrupted = { code: 'INTERRUPTED' }
      const calls = [
        student.generate(0, many, { ...SAMPLING, maxNewTokens: 200 }),
        student.score(items, { policyVersion: 0, encoding: 'factored', dtype: 'f32' }),
      ].map(call => assert.rejects(call, interrupted))
      // Answered between two passes: by then the first call is under way.
      await student.decode(items[0]!.response)
      await student.interrupt()
      await Promise.all(calls)
      await assert.rejects(student.generate(0, [], SAMPLING), interrupted)
      await student.accumulate(lessons(items, scored))
      assert.equal((await student.update(UPDATE)).version, 1)
    })

    it('loads a policy that another engine made', async () => {
      const path = join(folder, 'travelling')
      const maker = await openModel()
      const { weightsHash } = await step(maker, items)
      await maker.exportPolicy(1, path, 'f32')
      const worker = await openModel()
      await assert.rejects(worker.loadPolicy(1, path, '0'.repeat(64)), {
        code: 'CHECKPOINT_INVALID',
        message: /0{64}/,
      })
      await worker.loadPolicy(1, path, weightsHash)
      assert.equal(await worker.weightsHash(1), weightsHash)
      assert.equal(await worker.policyVersion(), 1)
    })

    it('names what is wrong with its input', async () => {
      const options = { policyVersion: 0, encoding: 'topk', dtype: 'f32' } as const
      const [item] = items
      const ids = (...values: number[]) => Int32Array.from(values)
      await assert.rejects(engine.score(items, options), { code: 'CONFIG_INVALID', message: /not undefined/ })
      await assert.rejects(engine.score(items, { ...options, k: 289 }), {
        code: 'CONFIG_INVALID',
        message: /288/,
      })
      await assert.rejects(engine.score([{ ...item!, response: ids(288) }], { ...options, k: 3 }), {
        code: 'RECORD_INVALID',
        message: /response 0 has the token id 288/,
      })
      await assert.rejects(engine.score([item!, { ...item!, teacherPrompt: ids() }], { ...options, k: 3 }), {
        code: 'RECORD_INVALID',
        message: /teacher prompt 1 has no tokens/,
      })
      await assert.rejects(engine.generate(0, [{ key: 'x', ids: ids(1, -1) }], SAMPLING), {
        code: 'RECORD_INVALID',
        message: /prompt of x has the token id -1/,
      })
      await assert.rejects(engine.generate(0, [{ key: 'x', ids: new Int32Array(250) }], SAMPLING), {
        code: 'PROMPT_TOO_LONG',
        message: /250 tokens.*12 new.*256/,
      })
      await assert.rejects(engine.generate(0, [], { ...SAMPLING, topP: 2 }), {
        code: 'CONFIG_INVALID',
        message: /topP is 2/,
      })
      const long = { ...item!, teacherPrompt: new Int32Array(256) }
      await assert.rejects(engine.score([long], { ...options, k: 3 }), { code: 'PROMPT_TOO_LONG' })
      const [scored] = await engine.score([item!], { policyVersion: 0, encoding: 'factored', dtype: 'f32' })
      const teacher = { ...scored!.teacher, head: '0'.repeat(64) }
      const { studentPrompt: prompt, response } = item!
      await assert.rejects(engine.accumulate([{ loss: 'forward-kl', prompt, response, teacher }]), {
        code: 'SLICE_MISMATCH',
        message: /output head 0{64}/,
      })
    })

    it('refuses directories that are no model, and calls after closing', async () => {
      await assert.rejects(openModel(join(folder, 'absent')), { code: 'MODEL_INVALID' })
      const unsupported = await makeTinyModel()
      const file = join(unsupported.path, 'config.json')
      await writeFile(file, (await readFile(file, 'utf8')).replace('"silu"', '"gelu"'))
      await assert.rejects(openModel(unsupported.path), { code: 'MODEL_UNSUPPORTED', message: /hidden_act/ })
      await unsupported.remove()
      const closed = await openModel()
      await closed.close()
      await closed.close()
      await assert.rejects(closed.policyVersion(), { code: 'ENGINE_FAILED', message: /closed/ })
    })
  })
}

/** Three responses of the engine's own, of different lengths. */
async function sampled(engine: Engine): Promise<ScoreItem[]> {
  const made: ScoreItem[] = []
  for (const [i, question] of ['what is this?', 'and the other man', 'no'].entries()) {
    const studentPrompt = await engine.encodeChat([{ role: 'user', content: question }])
    const teacherPrompt = await engine.encodeChat([{ role: 'user', content: `${question} Aspects: the hen` }])
    const [generation] = await engine.generate(0, [{ key: `item ${i}`, ids: studentPrompt }], SAMPLING)
    made.push({ studentPrompt, teacherPrompt, response: generation!.ids })
  }
  return made
}

function lessons(items: readonly ScoreItem[], scored: readonly Scored[]) {
  return items.map(({ studentPrompt, response }, i) => ({
    loss: 'forward-kl' as const,
    prompt: studentPrompt,
    response,
    teacher: scored[i]!.teacher,
  }))
}

/** One optimiser step on the newest policy. */
async function step(engine: Engine, items: readonly ScoreItem[]) {
  const policyVersion = await engine.policyVersion()
  const scored = await engine.score(items, { policyVersion, encoding: 'factored', dtype: 'f32' })
  const { losses } = await engine.accumulate(lessons(items, scored))
  const updated = await engine.update({ ...UPDATE, responses: items.length })
  return { ...updated, loss: losses.reduce((sum, loss) => sum + loss, 0) / items.length }
}

function numbers({ student, teacher, kl }: Scored) {
  return [student.lse, student.logp, teacher.lse, teacher.logp, kl].map(values => Array.from(values))
}

function rows(data: Uint8Array, width: number): Float32Array[] {
  const values = new Float32Array(Uint8Array.from(data).buffer)
  return Array.from({ length: values.length / width }, (_, t) => values.subarray(t * width, (t + 1) * width))
}

function logSoftmax(logits: Float32Array): Float64Array {
  const sum = logits.reduce((total, logit) => total + Math.exp(logit), 0)
  return Float64Array.from(logits, logit => logit - Math.log(sum))
}

function close(found: number, expected: number): void {
  assert.ok(Math.abs(found - expected) < 1e-5, `${found} is not ${expected}`)
}
