import assert from 'node:assert/strict'
import { test } from 'node:test'
import { from, lastValueFrom, toArray } from 'rxjs'
import type { Place } from '../../bus/port.ts'
import { filter } from '../../operators/filter.ts'
import type { Instance, Validation } from '../../schemas/types.ts'
import { contextRecord, record } from '../helpers/records.ts'

function validation(id: string, score: number | null, tau = 1): Validation {
  return {
    context: contextRecord(id),
    response: '',
    responseTokens: [],
    finish: 'stop',
    verdicts: [],
    score,
    accepted: score !== null && score >= tau,
    tau,
    sampling: { temperature: 1, topK: 0, topP: 1, minP: 0, stop: [], maxNewTokens: 8, seed: 1 },
    judge: 'j',
    prompt: 'p',
    teacher: 't',
  }
}

async function run(scores: readonly (number | null)[], batch = 2, firstBatch = 0) {
  const released: Place[] = []
  const records = scores.map((score, offset) =>
    record('validations', offset, validation(`q${offset}`, score)),
  )
  const options = {
    batch,
    firstBatch: async () => firstBatch,
    release: (places: readonly Place[]) => released.push(...places),
  }
  const finished = await lastValueFrom(from(records).pipe(filter(options), toArray()))
  const instances = finished.flatMap(({ outputs }) => outputs.map(({ value }) => value as Instance))
  return {
    finished,
    released,
    instances,
    keys: finished.flatMap(({ outputs }) => outputs.map(({ key }) => key)),
  }
}

test('keeps what reached τ, in whole batches that are numbered in order', async () => {
  const { instances, keys } = await run([1, 0.5, 1, 1, null, 1])
  assert.deepEqual(
    instances.map(({ context, batch }) => [context.id, batch.number, batch.index, batch.size]),
    [
      ['q0', 0, 0, 2],
      ['q2', 0, 1, 2],
      ['q3', 1, 0, 2],
      ['q5', 1, 1, 2],
    ],
  )
  assert.deepEqual(
    keys,
    ['batch 0 of 2', 'batch 0 of 2', 'batch 1 of 2', 'batch 1 of 2'],
    'a batch shares its key',
  )
})

test('the last batch is shorter, and numbers go on from what the log has', async () => {
  const { instances } = await run([1, 1, 1], 2, 7)
  assert.deepEqual(
    instances.map(({ batch }) => [batch.number, batch.size]),
    [
      [7, 2],
      [7, 2],
      [8, 1],
    ],
  )
})

test('every validation is finished once; those rejected give their credits back at once', async () => {
  const { finished, released } = await run([1, 0, 0, 0, 1])
  assert.deepEqual(
    finished.flatMap(({ consumed }) => consumed.map(({ offset }) => offset)).sort(),
    [0, 1, 2, 3, 4],
  )
  assert.deepEqual(
    released.map(({ offset }) => offset),
    [1, 2, 3],
  )
})

test('a batch whose members were consumed together is written together', async () => {
  const { finished } = await run([1, 0, 1])
  const batch = finished.find(({ outputs }) => outputs.length > 0)
  assert.deepEqual(
    batch?.consumed.map(({ offset }) => offset),
    [0, 2],
  )
})
