/** What goes through the loops: records as stages have them, and what a stage makes of each. */
import { type LogRecord, type Output, output } from '../../bus/port.ts'
import type { Question, Slice, Topic } from '../../schemas/types.ts'

export interface Load {
  readonly name: string
  readonly from: Topic
  readonly to: Topic
  /** Size of a record, encoded. */
  readonly bytes: number
  readonly records: number
  /** The stage's credits in records. */
  readonly inFlight: number
  make(index: number): Output
  operate(record: LogRecord): Output
}

const KEYS = 64
const keyOf = (index: number) => `user ${index % KEYS}`

/** A question of about 1,000 bytes becomes a context of about as many, as in retrieval. */
const small = {
  from: 'questions',
  to: 'contexts',
  bytes: 1000,
  make(index: number) {
    const post = (i: number) => ({
      id: `post ${index}/${i}`,
      text: 'I cook with what the market has. '.repeat(3),
    })
    const aspect = (i: number) => ({
      aspect: `Aspect ${i} of the answer`,
      reason: 'The user wrote about it more than once.',
      evidence: 'I cook with what the market has.',
    })
    const question: Question = {
      id: `question ${index}`,
      user: keyOf(index),
      split: 'train',
      category: 'Lifestyle_and_Personal_Development',
      question: 'What can I cook tonight with what is left of the week?',
      narrative: 'I have an hour, two pans and no oven. '.repeat(3),
      profile: [0, 1, 2, 3].map(post),
      aspects: [0, 1, 2].map(aspect),
    }
    return output('questions', question.user, question)
  },
  operate(record: LogRecord) {
    const { id, user, split, category, question, narrative, aspects, profile } = record.value as Question
    const passages = profile.map(({ id, text }, i) => ({ id, text, score: 1 / (i + 1) }))
    const profileSize = profile.length
    const retriever = 'bench'
    const asked = {
      id,
      user,
      split,
      category,
      question,
      narrative,
      aspects,
      passages,
      profileSize,
      retriever,
    }
    return output('contexts', record.key, asked)
  },
} as const

/** A slice of 1 MiB becomes a dead letter that holds its bytes. */
const large = {
  from: 'slices',
  to: 'deadletters',
  bytes: 1 << 20,
  make: (index: number) => sliceOutput(index, 1 << 20),
  operate({ topic, partition, offset, key, value }: LogRecord) {
    const { teacher: payload } = value as Slice
    const place = { stage: 'bench', topic, partition, offset, key }
    return output('deadletters', key, { ...place, code: 'X', message: '', attempts: 1, payload })
  },
} as const

export const LOADS: readonly Load[] = [
  { name: '1 KB', records: 30_000, inFlight: 4_000, ...small },
  { name: '1 KB, 256 in flight', records: 10_000, inFlight: 256, ...small },
  { name: '1 MiB', records: 128, inFlight: 32, ...large },
]

/** A slice whose teacher's hidden states take so many bytes. */
export function sliceOutput(index: number, bytes: number): Output {
  const teacher = new Uint8Array(bytes)
  for (let i = 0; i < bytes; i += 997) teacher[i] = index + i
  const none = new Uint8Array(0)
  return output('slices', keyOf(index), {
    instance: `instance ${index}`,
    batch: { number: index, index: 0, size: 1 },
    policyVersion: index,
    failed: null,
    part: 0,
    parts: 1,
    start: 0,
    count: 0,
    prompt: [1, 2, 3],
    response: [4, 5, 6],
    encoding: 'factored',
    dtype: 'f32',
    width: 0,
    student: none,
    teacher,
    studentIds: none,
    teacherIds: none,
    studentHead: '',
    teacherHead: '',
    tokenizer: '',
    vocabulary: 0,
    shift: '',
    studentLse: [],
    teacherLse: [],
    studentLogp: [],
    teacherLogp: [],
    kl: [],
    truncation: null,
  })
}
