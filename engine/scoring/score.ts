/**
 * The paired distributions of student and teacher over responses. Row t of everything is about response token
 * t: hidden state `prompt + t − 1` predicts it. Shape suffixes: T response tokens, D hidden size, V vocabulary.
 */
import { GraspError } from '../../errors/grasp-error.ts'
import type { TokenNumbers } from '../learner/head.ts'
import type { Learner, Sequence } from '../learner/learner.ts'
import type { Distributions, Dtype, Scored, ScoreItem, ScoreOptions } from '../port.ts'
import type { Weights } from '../weights/weights.ts'
import { encode, rounded } from './encode.ts'
import { topK } from './top-k.ts'
import { truncatedKl } from './truncation.ts'

/** A model with the matrix [V, D] that makes logits of its hidden states, and that matrix's hash. */
export interface Side {
  readonly weights: Weights
  readonly head: Weights extends ReadonlyMap<string, infer T> ? T : never
  readonly headHash: string
}

type Numbers = Pick<Distributions, 'lse' | 'logp'>

/** @throws GraspError RECORD_INVALID, PROMPT_TOO_LONG, CONFIG_INVALID (k). */
export async function score(
  learner: Learner,
  student: Side,
  teacher: Side,
  items: readonly ScoreItem[],
  options: ScoreOptions,
): Promise<Scored[]> {
  const vocabularySize = teacher.head.dims[0]!
  if (options.encoding === 'topk' && !(options.k! >= 1 && options.k! <= vocabularySize)) {
    throw new GraspError(
      'CONFIG_INVALID',
      `topk slices need k from 1 to the vocabulary's ${vocabularySize}, not ${options.k}`,
    )
  }
  const hidden = (side: Side, prompts: 'studentPrompt' | 'teacherPrompt') =>
    learner.hiddenStates(
      side.weights,
      items.map(item => sequenceOf(item[prompts], item.response)),
    )
  const studentHidden = await hidden(student, 'studentPrompt')
  const teacherHidden = await hidden(teacher, 'teacherPrompt')
  // One pass through the head for all items: short responses would leave its chunks half empty.
  const numbers = await learner.numbers(
    { hidden: concat(studentHidden), head: student.head },
    { hidden: concat(teacherHidden), head: teacher.head },
    concatIds(items.map(item => item.response)),
  )
  const scored: Scored[] = []
  let start = 0
  for (const [index, { response }] of items.entries()) {
    const of = slicer(numbers, start, start + response.length)
    start += response.length
    const pair = {
      student: {
        hidden: studentHidden[index]!,
        side: student,
        numbers: { lse: of('studentLse'), logp: of('studentLogp') },
      },
      teacher: {
        hidden: teacherHidden[index]!,
        side: teacher,
        numbers: { lse: of('teacherLse'), logp: of('teacherLogp') },
      },
    }
    scored.push({ ...(await encodePair(learner, pair, of('kl'), options)), kl: of('kl') })
  }
  return scored
}

interface Half {
  readonly hidden: Float32Array
  readonly side: Side
  readonly numbers: Numbers
}

async function encodePair(
  learner: Learner,
  { student, teacher }: { readonly student: Half; readonly teacher: Half },
  kl: Float32Array,
  options: ScoreOptions,
): Promise<Omit<Scored, 'kl'>> {
  const { encoding, dtype } = options
  if (options.numbersOnly) {
    const none = { encoding, dtype, width: 0, data: new Uint8Array(0) }
    return { student: { ...none, ...student.numbers }, teacher: { ...none, ...teacher.numbers } }
  }
  if (encoding === 'factored') return { student: factored(student, dtype), teacher: factored(teacher, dtype) }
  const logitsOf = ({ hidden, side }: Half) => learner.logits({ hidden, head: side.head })
  const studentLogits = await logitsOf(student)
  const teacherLogits = await logitsOf(teacher)
  const vocabularySize = teacher.side.head.dims[0]!
  if (encoding === 'dense') {
    const dense = (logits: Float32Array, { numbers }: Half): Distributions => ({
      encoding,
      dtype,
      width: vocabularySize,
      data: encode(logits, dtype),
      ...numbers,
    })
    return { student: dense(studentLogits, student), teacher: dense(teacherLogits, teacher) }
  }
  const k = options.k!
  return {
    student: truncated(studentLogits, vocabularySize, k, dtype, student.numbers),
    teacher: truncated(teacherLogits, vocabularySize, k, dtype, teacher.numbers),
    truncation: truncationError(studentLogits, teacherLogits, { student, teacher }, kl, k, dtype),
  }
}

function factored({ hidden, side, numbers }: Half, dtype: Dtype): Distributions {
  return {
    encoding: 'factored',
    dtype,
    width: side.head.dims[1]!,
    data: encode(hidden, dtype),
    head: side.headHash,
    ...numbers,
  }
}

function truncated(
  logits_TV: Float32Array,
  vocabularySize: number,
  k: number,
  dtype: Dtype,
  numbers: Numbers,
): Distributions {
  const tokens = logits_TV.length / vocabularySize
  const ids = new Uint32Array(tokens * k)
  const values = new Float32Array(tokens * k)
  for (let t = 0; t < tokens; t++) {
    const row = logits_TV.subarray(t * vocabularySize, (t + 1) * vocabularySize)
    const top = topK(row, k)
    ids.set(top, t * k)
    values.set(
      Float32Array.from(top, id => row[id]!),
      t * k,
    )
  }
  return {
    encoding: 'topk',
    dtype,
    width: k,
    data: encode(values, dtype),
    ids: new Uint8Array(ids.buffer),
    ...numbers,
  }
}

/** Mean over tokens of |KL of the truncated distributions − KL|, nats. */
function truncationError(
  studentLogits: Float32Array,
  teacherLogits: Float32Array,
  { student, teacher }: { readonly student: Half; readonly teacher: Half },
  kl: Float32Array,
  k: number,
  dtype: Dtype,
): number {
  if (kl.length === 0) return 0
  const vocabularySize = studentLogits.length / kl.length
  let sum = 0
  for (let t = 0; t < kl.length; t++) {
    const row = (logits: Float32Array) => logits.subarray(t * vocabularySize, (t + 1) * vocabularySize)
    const [studentRow, teacherRow] = [row(studentLogits), row(teacherLogits)]
    const top = topK(teacherRow, k)
    const approximate = truncatedKl({
      teacherLogits: rounded(
        Float32Array.from(top, id => teacherRow[id]!),
        dtype,
      ),
      teacherLse: teacher.numbers.lse[t]!,
      studentLogits: Float32Array.from(top, id => studentRow[id]!),
      studentLse: student.numbers.lse[t]!,
    })
    sum += Math.abs(approximate - kl[t]!)
  }
  return sum / kl.length
}

/** The last response token predicts nothing, so it is no input. */
function sequenceOf(prompt: Int32Array, response: Int32Array): Sequence {
  const ids = new Int32Array(prompt.length + Math.max(0, response.length - 1))
  ids.set(prompt)
  ids.set(response.subarray(0, Math.max(0, response.length - 1)), prompt.length)
  return { ids, from: prompt.length - 1, count: response.length }
}

function slicer(numbers: TokenNumbers, start: number, end: number) {
  return (name: keyof TokenNumbers) => numbers[name].slice(start, end)
}

function concat(parts: readonly Float32Array[]): Float32Array {
  const whole = new Float32Array(parts.reduce((sum, part) => sum + part.length, 0))
  let position = 0
  for (const part of parts) {
    whole.set(part, position)
    position += part.length
  }
  return whole
}

function concatIds(parts: readonly Int32Array[]): Int32Array {
  return Int32Array.from(parts.flatMap(part => Array.from(part)))
}
