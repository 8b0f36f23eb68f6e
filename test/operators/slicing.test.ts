import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Distributions, Scored } from '../../engine/port.ts'
import { checkSlice, failedSlice, joinTeacher, SHIFT, toSlices } from '../../operators/slicing.ts'
import type { Rollout } from '../../schemas/types.ts'

const rollout: Rollout = {
  instance: 'a',
  batch: { number: 2, index: 1, size: 4 },
  policyVersion: 2,
  failed: null,
  studentPrompt: [1, 2],
  teacherPrompt: [1, 9, 2],
  response: [5, 6, 7, 8, 0],
  finish: 'stop',
  sampling: { temperature: 1, topK: 0, topP: 1, minP: 0, stop: [], maxNewTokens: 8, seed: 1 },
  prompt: 'p',
  tokenizer: 't',
}

function side(offset: number): Distributions {
  const values = Float32Array.from({ length: 5 * 3 }, (_, i) => offset + i)
  const rows = Float32Array.from({ length: 5 }, (_, i) => offset + i)
  return {
    encoding: 'factored',
    dtype: 'f32',
    width: 3,
    data: new Uint8Array(values.buffer),
    head: `head ${offset}`,
    lse: rows,
    logp: rows,
  }
}

const scored: Scored = { student: side(0), teacher: side(100), kl: Float32Array.of(1, 2, 3, 4, 5) }
const identity = { dtype: 'f32' as const, tokenizer: 't', vocabulary: 10, sliceBytes: 50 }
const reader = { tokenizer: 't', vocabulary: 10, teacherHead: 'head 100' }

test('slices hold at most sliceBytes of payload and cover every response token once', () => {
  const slices = toSlices(rollout, scored, identity) // 24 bytes a token: two tokens a slice
  assert.deepEqual(
    slices.map(({ start, count, part, parts }) => [start, count, part, parts]),
    [
      [0, 2, 0, 3],
      [2, 2, 1, 3],
      [4, 1, 2, 3],
    ],
  )
  for (const slice of slices) {
    assert.ok(slice.student.byteLength + slice.teacher.byteLength <= 50)
    assert.equal(slice.shift, SHIFT)
    checkSlice(slice, reader)
  }
  assert.deepEqual(
    slices.flatMap(slice => slice.kl),
    [1, 2, 3, 4, 5],
  )
})

test('a token larger than sliceBytes still travels, alone', () => {
  assert.equal(toSlices(rollout, scored, { ...identity, sliceBytes: 1 }).length, 5)
})

test('joining gives back the teacher bit for bit, whatever the order of arrival', () => {
  const [first, second, third] = toSlices(rollout, scored, identity)
  const joined = joinTeacher([third!, first!, second!])
  assert.deepEqual(joined.data, scored.teacher.data)
  assert.deepEqual(joined.lse, scored.teacher.lse)
  assert.equal(joined.head, 'head 100')
})

test('a gap between slices is an error, not a shift', () => {
  const [first, , third] = toSlices(rollout, scored, identity)
  assert.throws(() => joinTeacher([first!, third!]), {
    code: 'SLICE_MISMATCH',
    message: /do not join at response token 2/,
  })
  assert.throws(() => joinTeacher([first!]), { code: 'SLICE_MISMATCH', message: /cover 2 of 5/ })
})

test('a reader refuses what it does not hold, naming it', () => {
  const slice = toSlices(rollout, scored, identity)[0]!
  const cases = [
    [{ ...slice, tokenizer: 'other' }, /tokenizer other.*holds t/],
    [{ ...slice, vocabulary: 11 }, /vocabulary size 11.*holds 10/],
    [{ ...slice, teacherHead: 'other' }, /teacher head other/],
    [{ ...slice, shift: 'row t predicts token t + 1' }, /shift convention/],
    [{ ...slice, teacher: slice.teacher.subarray(4) }, /teacher bytes/],
    [{ ...slice, encoding: 'sparse' }, /encoding sparse.*holds factored, dense, topk/],
    [{ ...slice, encoding: 'topk' }, /teacher id bytes 0.*holds 24/],
    [{ ...slice, teacherLse: [1] }, /teacher log-sum-exps 1.*holds 2/],
  ] as const
  for (const [bad, message] of cases)
    assert.throws(() => checkSlice(bad, reader), { code: 'SLICE_MISMATCH', message })
})

test('token ids that the model has not are refused before they are trained on', () => {
  const slice = toSlices(rollout, scored, identity)[0]!
  const cases = [
    [{ ...slice, response: [5, 6, 10] }, /the response of slice 0 of the rollout of a .*token id 10/],
    [{ ...slice, prompt: [-1] }, /the prompt of slice 0 .*token id -1/],
    [{ ...slice, prompt: [] }, /the prompt of slice 0 .*has no tokens/],
  ] as const
  for (const [bad, message] of cases)
    assert.throws(() => checkSlice(bad, reader), { code: 'RECORD_INVALID', message })
})

test('a failed rollout leaves a slice that keeps its batch countable', () => {
  const slice = failedSlice(rollout, 'too long', identity)
  assert.deepEqual(slice.batch, rollout.batch)
  assert.equal(slice.failed, 'too long')
  assert.equal(slice.count, 0)
})
