import { idsProblem } from '../engine/check-ids.ts'
import type { Distributions, Scored } from '../engine/port.ts'
import { GraspError } from '../errors/grasp-error.ts'
import type { Rollout, Slice } from '../schemas/types.ts'

/** Row t of a slice is the distribution of response token `start + t`: no reader has to shift. */
export const SHIFT = 'row t predicts response token start + t'

export interface SliceIdentity {
  readonly dtype: 'f32' | 'f16' | 'bf16'
  readonly tokenizer: string
  readonly vocabulary: number
  /** Most payload bytes (both sides) that a slice may hold; at least one token is always taken. */
  readonly sliceBytes: number
}

/** Cuts a scored rollout into slices of at most `sliceBytes`, in the order of its tokens. */
export function toSlices(rollout: Rollout, scored: Scored, identity: SliceIdentity): Slice[] {
  const { student, teacher } = scored
  const tokens = rollout.response.length
  const bytesPerToken =
    (student.data.byteLength + teacher.data.byteLength + idBytes(student) + idBytes(teacher)) / tokens
  const perSlice = Math.max(1, Math.floor(identity.sliceBytes / bytesPerToken))
  const parts = Math.ceil(tokens / perSlice)
  return Array.from({ length: parts }, (_, part) => {
    const start = part * perSlice
    const end = Math.min(tokens, start + perSlice)
    const rows = (bytes: Uint8Array | undefined) => cut(bytes, start, end, tokens)
    return {
      instance: rollout.instance,
      batch: rollout.batch,
      policyVersion: rollout.policyVersion,
      failed: null,
      part,
      parts,
      start,
      count: end - start,
      prompt: rollout.studentPrompt,
      response: rollout.response,
      encoding: student.encoding,
      dtype: identity.dtype,
      width: student.width,
      student: rows(student.data),
      teacher: rows(teacher.data),
      studentIds: rows(student.ids),
      teacherIds: rows(teacher.ids),
      studentHead: student.head ?? '',
      teacherHead: teacher.head ?? '',
      tokenizer: identity.tokenizer,
      vocabulary: identity.vocabulary,
      shift: SHIFT,
      studentLse: Array.from(student.lse.subarray(start, end)),
      teacherLse: Array.from(teacher.lse.subarray(start, end)),
      studentLogp: Array.from(student.logp.subarray(start, end)),
      teacherLogp: Array.from(teacher.logp.subarray(start, end)),
      kl: Array.from(scored.kl.subarray(start, end)),
      truncation: scored.truncation ?? null,
    }
  })
}

/** Stands in for the slices of a rollout that could not be scored, so that its batch stays countable. */
export function failedSlice(
  of: Pick<Rollout, 'instance' | 'batch' | 'policyVersion'>,
  reason: string,
  identity: SliceIdentity,
): Slice {
  const none = new Uint8Array(0)
  return {
    instance: of.instance,
    batch: of.batch,
    policyVersion: of.policyVersion,
    failed: reason,
    part: 0,
    parts: 1,
    start: 0,
    count: 0,
    prompt: [],
    response: [],
    encoding: 'factored',
    dtype: identity.dtype,
    width: 0,
    student: none,
    teacher: none,
    studentIds: none,
    teacherIds: none,
    studentHead: '',
    teacherHead: '',
    tokenizer: identity.tokenizer,
    vocabulary: identity.vocabulary,
    shift: SHIFT,
    studentLse: [],
    teacherLse: [],
    studentLogp: [],
    teacherLogp: [],
    kl: [],
    truncation: null,
  }
}

const ENCODINGS: ReadonlySet<string> = new Set<Distributions['encoding']>(['factored', 'dense', 'topk'])

/** What a reader of slices holds; a slice that was made with anything else is refused. */
export interface SliceReader {
  readonly tokenizer: string
  readonly vocabulary: number
  /** The teacher's output head, for `factored` slices. */
  readonly teacherHead: string
}

/** Throws SLICE_MISMATCH naming what differs, RECORD_INVALID for token ids that no model of the reader's takes. */
export function checkSlice(slice: Slice, reader: SliceReader): void {
  const name = `slice ${slice.part} of the rollout of ${slice.instance} (batch ${slice.batch.number})`
  const refuse = (what: string, found: string | number, expected: string | number) => {
    throw new GraspError(
      'SLICE_MISMATCH',
      `${name} has ${what} ${found}, ` +
        `but this trainer holds ${expected}; train with the model that scored it, or score the rollouts again`,
    )
  }
  if (slice.tokenizer !== reader.tokenizer) refuse('tokenizer', slice.tokenizer, reader.tokenizer)
  if (slice.vocabulary !== reader.vocabulary) refuse('vocabulary size', slice.vocabulary, reader.vocabulary)
  if (slice.shift !== SHIFT) refuse('shift convention', `"${slice.shift}"`, `"${SHIFT}"`)
  if (!ENCODINGS.has(slice.encoding)) refuse('encoding', slice.encoding, [...ENCODINGS].join(', '))
  if (slice.encoding === 'factored' && slice.teacherHead !== reader.teacherHead) {
    refuse('teacher head', slice.teacherHead, reader.teacherHead)
  }
  const bytes = { f32: 4, f16: 2, bf16: 2 }[slice.dtype]
  if (bytes === undefined) refuse('dtype', slice.dtype, 'f32, f16 or bf16')
  const expected = slice.count * slice.width * (bytes ?? 0)
  if (slice.teacher.byteLength !== expected) refuse('teacher bytes', slice.teacher.byteLength, expected)
  const idBytes = slice.encoding === 'topk' ? slice.count * slice.width * 4 : 0
  if (slice.teacherIds.byteLength !== idBytes)
    refuse('teacher id bytes', slice.teacherIds.byteLength, idBytes)
  if (slice.teacherLse.length !== slice.count) {
    refuse('teacher log-sum-exps', slice.teacherLse.length, slice.count)
  }
  const problem =
    idsProblem(`the prompt of ${name}`, slice.prompt, reader.vocabulary) ??
    idsProblem(`the response of ${name}`, slice.response, reader.vocabulary)
  if (problem) throw problem
}

/** Joins the slices of one rollout, in any order, to the teacher's distributions over its whole response. */
export function joinTeacher(slices: readonly Slice[]): Distributions {
  const ordered = [...slices].sort((a, b) => a.start - b.start)
  const first = ordered[0]!
  let next = 0
  for (const slice of ordered) {
    if (slice.start !== next || slice.encoding !== first.encoding || slice.width !== first.width) {
      throw new GraspError(
        'SLICE_MISMATCH',
        `rollout of ${first.instance} (batch ${first.batch.number}): its slices do not join at response token ${next}`,
      )
    }
    next += slice.count
  }
  if (next !== first.response.length) {
    throw new GraspError(
      'SLICE_MISMATCH',
      `rollout of ${first.instance} (batch ${first.batch.number}): its slices cover ${next} of ${first.response.length} response tokens`,
    )
  }
  const ids = concatenate(ordered.map(slice => slice.teacherIds))
  return {
    encoding: first.encoding as Distributions['encoding'],
    dtype: first.dtype as Distributions['dtype'],
    width: first.width,
    data: concatenate(ordered.map(slice => slice.teacher)),
    ...(ids.byteLength > 0 && { ids }),
    ...(first.teacherHead !== '' && { head: first.teacherHead }),
    lse: Float32Array.from(ordered.flatMap(slice => slice.teacherLse)),
    logp: Float32Array.from(ordered.flatMap(slice => slice.teacherLogp)),
  }
}

function idBytes(side: Distributions): number {
  return side.ids?.byteLength ?? 0
}

function cut(bytes: Uint8Array | undefined, start: number, end: number, tokens: number): Uint8Array {
  if (bytes === undefined) return new Uint8Array(0)
  const perToken = bytes.byteLength / tokens
  return bytes.subarray(start * perToken, end * perToken)
}

function concatenate(arrays: readonly Uint8Array[]): Uint8Array {
  if (arrays.length === 1) return arrays[0]!
  const joined = new Uint8Array(arrays.reduce((sum, array) => sum + array.byteLength, 0))
  let at = 0
  for (const array of arrays) {
    joined.set(array, at)
    at += array.byteLength
  }
  return joined
}
