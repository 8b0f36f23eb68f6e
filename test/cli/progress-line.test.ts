import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { clock, progressLine, short } from '../../cli/progress-line.ts'
import { advance, INITIAL, type ProgressState, secondsLeft } from '../../cli/progress-state.ts'
import type { ProgressEvent } from '../../pipelines/events.ts'

/** Events one second apart. */
const after = (...events: ProgressEvent[]): ProgressState =>
  events.reduce((state, event, i) => advance(state, event, i * 1000), INITIAL)

const update = (version: number, changes: object = {}): ProgressEvent => ({
  kind: 'update',
  version,
  loss: 0.18321,
  kl: 0.18321,
  gradientNorm: 0.4,
  tokens: 1000,
  seconds: 2,
  of: 77,
  ...changes,
})
const stage = (name: string, seen: number, changes: object = {}): ProgressEvent => ({
  kind: 'stage',
  stage: name,
  seen,
  written: seen,
  deadletters: 0,
  ...changes,
})

describe('progressLine', () => {
  test('validation shows counts, kept share, dead letters and the time left', () => {
    const state = after(
      { kind: 'phase', name: 'validating' },
      stage('retrieval', 200, { total: 200 }),
      stage('validation', 0, { total: 200, deadletters: 1 }),
      { kind: 'validation', seen: 100, kept: 31 },
      stage('validation', 100, { total: 200, deadletters: 1 }),
    )
    // 100 of 200 took from second 2 to second 4.
    assert.equal(
      progressLine(state, 200, 4000),
      'validating  validation 100/200 · kept 31/100 (31 %) · 1 dead letter · 0:02 left',
    )
  })

  test('training shows policy, loss, KL, speed; the wait before the first update is no pace', () => {
    const state = after(
      { kind: 'phase', name: 'training' },
      update(1, { seconds: 500 }),
      update(2),
      update(3),
    )
    assert.equal(
      progressLine(state, 200, 3000),
      'training  policy 3/77 · loss 0.183 · KL 0.183 · 500 tokens/s · 2:28 left',
    )
  })

  test('an evaluation under way stands before what training last said', () => {
    const evaluation = { kind: 'evaluation', role: 'teacher', done: 64, total: 200 } as const
    const state = after(update(77), { kind: 'phase', name: 'evaluating' }, evaluation)
    assert.match(progressLine(state, 200, 2000), /^evaluating {2}teacher 64\/200 · policy 77\/77$/)
    const ended = advance(state, { ...evaluation, done: 200, score: 0.8 }, 3000)
    assert.match(progressLine(ended, 200, 3000), /^evaluating {2}policy 77\/77 · loss/)
  })

  test('after the death of the engine all counts begin again, and it is not forgotten', () => {
    const state = after({ kind: 'phase', name: 'training' }, stage('rollout', 544), update(33), {
      kind: 'recovery',
      deaths: 1,
    })
    assert.equal(progressLine(state, 200, 3000), 'recovering  the engine died once')
    const again = advance(advance(state, { kind: 'recovery', deaths: 2 }, 4000), update(26), 5000)
    assert.match(progressLine(again, 200, 5000), /^training {2}policy 26\/77 · .* · the engine died 2 times$/)
  })

  test('a download shows what is there, its speed and the time left; what was there before is no speed', () => {
    const download = (bytes: number, files: number): ProgressEvent => ({
      kind: 'download',
      bytes,
      totalBytes: 500e6,
      files,
      totalFiles: 3,
    })
    const state = after({ kind: 'phase', name: 'fetching a/b' }, download(100e6, 1))
    assert.equal(progressLine(state, 200, 1000), 'fetching a/b  100/500 MB · 1/3 files')
    const later = advance(state, download(200e6, 2), 11_000)
    assert.equal(
      progressLine(later, 200, 11_000),
      'fetching a/b  200/500 MB · 2/3 files · 10.0 MB/s · 0:30 left',
    )
    const ended = advance(later, download(500e6, 3), 21_000)
    assert.match(
      progressLine(ended, 200, 21_000),
      /^fetching a\/b {2}500\/500 MB · 3\/3 files · 20\.0 MB\/s$/,
    )
  })

  test('never wider than asked; what matters least goes first', () => {
    const state = after(
      { kind: 'phase', name: 'training' },
      stage('rollout', 544),
      stage('scoring', 528),
      { kind: 'validation', seen: 640, kept: 311 },
      update(33),
      update(34),
    )
    for (let width = 1; width < 160; width++)
      assert.ok(progressLine(state, width, 6000).length <= width, `${width}`)
    assert.equal(progressLine(state, 60, 6000), 'training  policy 34/77 · loss 0.183 · KL 0.183 · 1:26 left')
    assert.equal(progressLine(state, 6, 6000), 'train…')
  })

  test('the slowest stage with a known end tells the time left', () => {
    const slow = [stage('validation', 0, { total: 100 }), stage('validation', 10, { total: 100 })]
    const state = after(
      ...slow,
      stage('retrieval', 50, { total: 100 }),
      stage('retrieval', 90, { total: 100 }),
    )
    // 10 took one second: 90 take nine, counted from second 3: the pace is 10 in 3 seconds by then.
    assert.equal(secondsLeft(state, 3000), 27)
  })

  test('nothing is promised before anything moved', () => {
    assert.equal(secondsLeft(after(stage('ingest', 5, { total: 10 })), 1000), undefined)
    assert.equal(
      secondsLeft(after(update(1, { of: undefined }), update(2, { of: undefined })), 1000),
      undefined,
    )
    assert.equal(progressLine(INITIAL, 80, 0), 'starting')
  })
})

test('clock', () => {
  assert.deepEqual([0, 59.6, 75, 3700].map(clock), ['0:00', '1:00', '1:15', '1:01:40'])
})

test('short', () => {
  assert.deepEqual([0.18321, 1234.5, 0, 0.00001234, Number.NaN].map(short), [
    '0.183',
    '1235',
    '0.00',
    '1.2e-5',
    'NaN',
  ])
})
