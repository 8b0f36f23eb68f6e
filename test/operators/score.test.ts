/** rollouts → slices with a real engine, where some rollouts are not what it can be given. */
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { from, lastValueFrom } from 'rxjs'
import type { LogRecord } from '../../bus/port.ts'
import { openLocalEngine } from '../../engine/local-engine.ts'
import type { Engine, ModelInfo } from '../../engine/port.ts'
import { batchKey } from '../../operators/batch-key.ts'
import { score } from '../../operators/score.ts'
import type { DeadLetter, Rollout, Slice } from '../../schemas/types.ts'
import { record } from '../helpers/records.ts'
import { makeTinyModel, type TinyModel } from '../helpers/tiny-model.ts'

let model: TinyModel
let engine: Engine
let info: ModelInfo
before(async () => {
  model = await makeTinyModel()
  engine = await openLocalEngine({
    path: model.path,
    device: 'cpu',
    threads: 1,
    keepPolicies: 0,
    tokensPerPass: 512,
    sequencesPerPass: 8,
  })
  info = await engine.info()
})
after(async () => {
  await engine.close()
  await model.remove()
})

function rolloutOf(index: number, size: number, change: Partial<Rollout> = {}): Rollout {
  return {
    instance: `i${index}`,
    batch: { number: 0, index, size },
    policyVersion: 0,
    failed: null,
    studentPrompt: [5, 9, 11],
    teacherPrompt: [5, 9, 40, 11],
    response: [20, 27],
    finish: 'stop',
    sampling: { temperature: 1, topK: 0, topP: 1, minP: 0, stop: [], maxNewTokens: 16, seed: 1 },
    prompt: 'p',
    tokenizer: info.tokenizerHash,
    ...change,
  }
}

async function scored(rollouts: readonly Rollout[]) {
  const deliveries = rollouts.map((rollout, offset): LogRecord<'rollouts'> => {
    return { ...record('rollouts', offset, rollout), key: batchKey(rollout.batch) }
  })
  const { outputs } = await lastValueFrom(
    from(deliveries).pipe(
      score({
        engine,
        info,
        encoding: 'factored',
        dtype: 'f32',
        k: 0,
        sliceBytes: 1 << 20,
        lag: 0,
        policies: { reached: async () => {} },
      }),
    ),
  )
  const of = (topic: string) => outputs.filter(output => output.topic === topic).map(({ value }) => value)
  return { slices: of('slices') as Slice[], letters: of('deadletters') as DeadLetter[] }
}

test('a rollout that the engine would refuse is a dead letter, and the rest of its batch is scored', async () => {
  const beyond = info.vocabularySize
  const { slices, letters } = await scored([
    rolloutOf(0, 5),
    rolloutOf(1, 5, { response: [20, beyond] }),
    rolloutOf(2, 5, { studentPrompt: [] }),
    rolloutOf(3, 5, { teacherPrompt: [-1] }),
    rolloutOf(4, 5, { response: [] }),
  ])
  assert.deepEqual(
    slices.map(({ batch, failed }) => [batch.index, failed === null]).sort(),
    [0, 1, 2, 3, 4].map(index => [index, index === 0]),
  )
  const messages = letters.map(({ code, message }) => `${code}: ${message}`)
  assert.match(
    messages[0]!,
    new RegExp(`^RECORD_INVALID: the response of the rollout of i1 .* id ${beyond};`),
  )
  assert.match(messages[1]!, /^RECORD_INVALID: the student's prompt of the rollout of i2 .* has no tokens/)
  assert.match(messages[2]!, /^RECORD_INVALID: the teacher's prompt of the rollout of i3 .* id -1;/)
  assert.match(messages[3]!, /^RECORD_INVALID: the response of the rollout of i4 .* has no tokens/)
})
