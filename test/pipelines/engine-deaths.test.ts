import assert from 'node:assert/strict'
import { test } from 'node:test'
import { GraspError } from '../../errors/grasp-error.ts'
import { EngineDeaths } from '../../pipelines/engine-deaths.ts'
import type { ProgressEvent } from '../../pipelines/events.ts'

const MINUTE = 60_000
const died = (how = 'it was killed') => new GraspError('ENGINE_DIED', how)
const update = (version: number): ProgressEvent => {
  return { kind: 'update', version, loss: 1, kl: 1, gradientNorm: 1, tokens: 1, seconds: 1 }
}
const stage = (name: string): ProgressEvent => {
  return { kind: 'stage', stage: name, seen: 1, written: 1, deadletters: 0 }
}
const evaluation = (score?: number): ProgressEvent => {
  return { kind: 'evaluation', role: 'grasp', done: 4, total: 8, ...(score !== undefined && { score }) }
}

test('without anything gained deaths count however long they take, and waits grow', () => {
  let now = 0
  const deaths = new EngineDeaths(8, () => now)
  const waits: number[] = []
  for (let i = 0; i < 8; i++) {
    waits.push(deaths.note(died()).waitSeconds)
    now += 90 * MINUTE
    // What needs no engine, and what is only added up, is no gain.
    deaths.noteProgress(stage('retrieval'))
    deaths.noteProgress(evaluation(0.5))
  }
  assert.deepEqual(waits, [1, 2, 4, 8, 16, 32, 60, 60])
  assert.throws(() => deaths.note(died()), {
    code: 'ENGINE_DIED',
    message:
      /^it was killed\. It died 9 times without anything gained in between, each time so; engine\.restarts = 8 /,
  })
})

test('updates that are made again are no gain, further ones are', () => {
  const deaths = new EngineDeaths(2, () => 0)
  deaths.noteProgress(update(3))
  assert.deepEqual(deaths.note(died()), { number: 1, waitSeconds: 1 })
  for (const version of [1, 2, 3]) deaths.noteProgress(update(version))
  assert.deepEqual(deaths.note(died()), { number: 2, waitSeconds: 2 })
  deaths.noteProgress(update(4))
  assert.throws(() => deaths.note(died('it hung')), {
    message: /^it hung\. It died 3 times within an hour; /,
  })
})

for (const [what, event] of [
  ['a batch', stage('scoring')],
  ['held-out answers', evaluation()],
] as const) {
  test(`after ${what}, a death counts for an hour`, () => {
    let now = 0
    const deaths = new EngineDeaths(1, () => now)
    for (let i = 0; i < 5; i++) {
      assert.deepEqual(deaths.note(died()), { number: 1, waitSeconds: 1 })
      deaths.noteProgress(event)
      now += 60 * MINUTE
    }
    deaths.note(died())
    deaths.noteProgress(event)
    now += 59 * MINUTE
    assert.throws(() => deaths.note(died()), { message: /It died 2 times within an hour/ })
  })
}

test('none is allowed: the first is the last', () => {
  assert.throws(() => new EngineDeaths(0).note(died()), {
    code: 'ENGINE_DIED',
    message: /^it was killed\. engine\.restarts = 0 allows for no more\. The same command goes on/,
  })
})
