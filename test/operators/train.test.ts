import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { from, lastValueFrom, toArray } from 'rxjs'
import type { Delivery, Place } from '../../bus/port.ts'
import { openLocalEngine } from '../../engine/local-engine.ts'
import type { Engine, ModelInfo } from '../../engine/port.ts'
import { GraspError } from '../../errors/grasp-error.ts'
import { batchKey } from '../../operators/batch-key.ts'
import { toSlices } from '../../operators/slicing.ts'
import { type Step, train } from '../../operators/train.ts'
import type { DeadLetter, Slice, Span } from '../../schemas/types.ts'
import { record } from '../helpers/records.ts'
import { makeTinyModel, type TinyModel } from '../helpers/tiny-model.ts'

let model: TinyModel
let slices: Slice[]
let info: ModelInfo
before(async () => {
  model = await makeTinyModel()
  const engine = await open()
  info = await engine.info()
  slices = await batchOf(engine, 4)
  await engine.close()
})
after(() => model.remove())

function open(): Promise<Engine> {
  const options = {
    device: 'cpu',
    threads: 1,
    keepPolicies: 0,
    tokensPerPass: 512,
    sequencesPerPass: 8,
  } as const
  return openLocalEngine({ path: model.path, ...options })
}

/** Slices (one token each) of a batch of responses of unequal lengths; the teacher reads one more token. */
async function batchOf(engine: Engine, size: number): Promise<Slice[]> {
  const items = Array.from({ length: size }, (_, i) => ({
    studentPrompt: Int32Array.of(5 + i, 9, 11),
    teacherPrompt: Int32Array.of(5 + i, 9, 40, 11),
    response: Int32Array.from({ length: 2 + 3 * i }, (_, t) => 20 + ((7 * i + 3 * t) % 50)),
  }))
  const scored = await engine.score(items, { policyVersion: 0, encoding: 'factored', dtype: 'f32' })
  const identity = {
    dtype: 'f32' as const,
    tokenizer: info.tokenizerHash,
    vocabulary: info.vocabularySize,
    sliceBytes: 1,
  }
  return items.flatMap((item, index) =>
    toSlices(
      {
        instance: `i${index}`,
        batch: { number: 0, index, size },
        policyVersion: 0,
        failed: null,
        studentPrompt: [...item.studentPrompt],
        teacherPrompt: [...item.teacherPrompt],
        response: [...item.response],
        finish: 'stop',
        sampling: { temperature: 1, topK: 0, topP: 1, minP: 0, stop: [], maxNewTokens: 16, seed: 1 },
        prompt: 'p',
        tokenizer: info.tokenizerHash,
      },
      scored[index]!,
      identity,
    ),
  )
}

async function run(
  deliveries: readonly Delivery<'slices'>[],
  microbatch = 4,
  version = 0,
  trained: ReadonlyMap<number, readonly Span[]> = new Map(),
) {
  const engine = await open()
  const steps: Step[] = []
  const released: Place[] = []
  try {
    const updates$ = from(deliveries).pipe(
      train({
        engine,
        reader: {
          tokenizer: info.tokenizerHash,
          vocabulary: info.vocabularySize,
          teacherHead: info.teacherHead,
        },
        schedule: { schedule: 'constant', learningRate: 1e-3, warmup: 0, totalUpdates: null },
        optimiser: { betas: [0.9, 0.999], epsilon: 1e-8, weightDecay: 0.01, clip: 1 },
        microbatch,
        lag: 0,
        version,
        trained,
        release: places => released.push(...places),
        settle: async step => {
          steps.push(step)
        },
      }),
      toArray(),
    )
    const updates = await lastValueFrom(updates$)
    return { updates, steps, released }
  } finally {
    await engine.close()
  }
}

const deliver = (values: readonly Slice[]): Delivery<'slices'>[] =>
  values.map((value, offset) => ({ ...record('slices', offset, value), key: batchKey(value.batch) }))
/** The same, but nothing of these records can be decoded. */
const undecodable = (deliveries: readonly Delivery<'slices'>[]): Delivery<'slices'>[] =>
  deliveries.map(({ value: _, error: __, ...envelope }) => {
    return { ...envelope, error: new GraspError('RECORD_UNDECODABLE', 'not a record') }
  })

test('a batch makes one update; its loss is the KL that scoring measured', async () => {
  const { updates, steps, released } = await run(deliver(slices))
  assert.equal(updates.length, 1)
  const [update] = updates
  assert.equal(update!.version, 1)
  assert.equal(update!.responses, 4)
  assert.equal(update!.tokens, 2 + 5 + 8 + 11)
  assert.deepEqual(update!.instances, ['i0', 'i1', 'i2', 'i3'])
  assert.ok(update!.loss > 1e-4)
  assert.ok(Math.abs(update!.loss - update!.kl) < 1e-6, `loss ${update!.loss}, kl ${update!.kl}`)
  assert.deepEqual(steps[0]!.positions, [{ topic: 'slices', partition: 0, offset: slices.length }])
  assert.equal(released.length, slices.length)
})

test('the order of arrival does not change a bit of the weights', async () => {
  const inOrder = await run(deliver(slices))
  const reversed = await run(deliver([...slices].reverse()))
  assert.equal(reversed.updates[0]!.weightsHash, inOrder.updates[0]!.weightsHash)
})

test('1, 2 or 4 microbatches of unequal lengths give the same step', async () => {
  const [one, two, four] = [
    await run(deliver(slices), 4),
    await run(deliver(slices), 2),
    await run(deliver(slices), 1),
  ]
  for (const other of [two, four]) {
    assert.ok(Math.abs(other.updates[0]!.loss - one.updates[0]!.loss) < 1e-6)
    const relative = Math.abs(other.updates[0]!.gradientNorm / one.updates[0]!.gradientNorm - 1)
    assert.ok(relative < 1e-4, `gradient norms differ by ${relative}`)
  }
})

test('slices of the batch at hand give their credits back at once, later ones when their batch comes', async () => {
  const later = slices.map(slice => ({ ...slice, batch: { ...slice.batch, number: 1 } }))
  const { released } = await run(deliver([...later, ...slices.slice(0, -1)]))
  assert.deepEqual(
    released.map(({ offset }) => offset),
    Array.from({ length: slices.length - 1 }, (_, i) => later.length + i),
  )
  const all = await run(deliver([...later, ...slices]))
  assert.equal(all.released.length, 2 * slices.length)
  assert.equal(all.updates.length, 2)
})

test('a position never passes a slice of a batch that is yet to be trained on', async () => {
  const later = slices.map(slice => ({ ...slice, batch: { ...slice.batch, number: 1 } }))
  const { steps } = await run(deliver([...later, ...slices]))
  const [first, second] = steps.map(({ positions }) => positions)
  assert.deepEqual(first, [], 'batch 1 lies before batch 0, and is not done')
  assert.deepEqual(second, [{ topic: 'slices', partition: 0, offset: 2 * slices.length }])
})

test('slices that a checkpoint has in its weights are passed over when they are delivered again', async () => {
  const later = slices.map(slice => ({ ...slice, batch: { ...slice.batch, number: 1 } }))
  const consumed = [{ partition: 0, from: later.length, to: 2 * later.length }]
  const again = await run(deliver([...later, ...slices]), 4, 1, new Map([[0, consumed]]))
  assert.deepEqual(
    again.updates.map(({ batch, responses }) => [batch, responses]),
    [[1, 4]],
  )
  assert.deepEqual(
    again.steps.flatMap(({ deadLetters }) => deadLetters),
    [],
  )
})

test('a slice of a batch that was trained on without it is a dead letter', async () => {
  const later = slices.map(slice => ({ ...slice, batch: { ...slice.batch, number: 1 } }))
  const { steps } = await run(deliver([slices[0]!, ...later]), 4, 1)
  assert.deepEqual(
    steps.map(({ positions, deadLetters }) => [positions[0]!.offset, deadLetters.length]),
    [[1 + later.length, 1]],
  )
})

test('an unfinished batch makes no update', async () => {
  assert.equal((await run(deliver(slices.slice(0, -1)))).updates.length, 0)
})

test('a slice of another tokenizer becomes a dead letter and its batch goes on without it', async () => {
  const values = slices.map((slice, i) => (i === 0 ? { ...slice, tokenizer: 'other' } : slice))
  const { updates, steps } = await run(deliver(values))
  assert.equal(updates[0]!.responses, 3)
  assert.equal(steps[0]!.deadLetters.length, 1)
})

test('slices that are refused cost their own rollout alone, however many they are', async () => {
  const values = slices.map(slice => (slice.batch.index === 0 ? { ...slice, tokenizer: 'other' } : slice))
  const { updates, steps } = await run(deliver(values))
  assert.deepEqual(
    updates.map(({ instances }) => instances),
    [['i1', 'i2', 'i3']],
  )
  assert.deepEqual(
    steps[0]!.deadLetters.map(({ value }) => (value as DeadLetter).code),
    ['SLICE_MISMATCH', 'SLICE_MISMATCH'],
  )
})

test('an undecodable slice becomes a dead letter and its batch goes on without it', async () => {
  const deliveries = deliver(slices)
  deliveries.splice(3, 1, ...undecodable([deliveries[3]!]))
  const { updates, steps } = await run(deliveries)
  assert.equal(updates[0]!.responses, 3)
  assert.equal(steps[0]!.deadLetters.length, 1)
})

test('a batch of which no slice can be decoded makes its policy version, and the next one is whole', async () => {
  const later = slices.map(slice => ({ ...slice, batch: { ...slice.batch, number: 1 } }))
  const deliveries = deliver([...slices, ...later])
  const { updates, steps } = await run([
    ...undecodable(deliveries.slice(0, slices.length)),
    ...deliveries.slice(slices.length),
  ])
  assert.deepEqual(
    updates.map(({ version, responses, rolloutVersion }) => [version, responses, rolloutVersion]),
    [
      [1, 0, 0],
      [2, 4, 0],
    ],
  )
  assert.equal(updates[0]!.weightsHash, info.weightsHash)
  assert.equal(steps.flatMap(({ deadLetters }) => deadLetters).length, slices.length)
})

test('a record of no batch is a dead letter that no batch counts', async () => {
  const [stray] = undecodable([{ ...record('slices', 0, slices[0]!), key: 'k' }])
  const rest = deliver(slices).map(delivery => ({ ...delivery, offset: delivery.offset + 1 }))
  const { updates, steps } = await run([stray!, ...(rest as Delivery<'slices'>[])])
  assert.equal(updates[0]!.responses, 4)
  assert.equal(steps[0]!.deadLetters.length, 1)
})

test('a batch of which nothing could be scored still makes its policy version, with the same weights', async () => {
  const failed = slices
    .filter(({ part }) => part === 0)
    .map(slice => ({ ...slice, failed: 'too long', parts: 1 }))
  const { updates } = await run(deliver(failed))
  assert.equal(updates[0]!.version, 1)
  assert.equal(updates[0]!.responses, 0)
  assert.equal(updates[0]!.weightsHash, info.weightsHash)
})
