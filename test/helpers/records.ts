/** Records as a log would deliver them, for operators that are tested without one. */
import type { LogRecord } from '../../bus/port.ts'
import type { Context, Records, Slice, Topic } from '../../schemas/types.ts'

export function record<T extends Topic>(
  topic: T,
  offset: number,
  value: Records[T],
  partition = 0,
): LogRecord<T> {
  return { topic, partition, offset, key: 'k', timestamp: 0, payload: new Uint8Array(), value }
}

export function contextRecord(id: string, change: Partial<Context> = {}): Context {
  return {
    id,
    user: `user of ${id}`,
    split: 'train',
    category: 'Lifestyle_and_Personal_Development',
    question: `Which walk suits me, ${id}?`,
    narrative: 'I have a free afternoon.',
    aspects: [
      { aspect: 'short', reason: 'The user tires soon.', evidence: 'my legs gave up' },
      { aspect: 'quiet', reason: 'The user dislikes crowds.', evidence: 'too many people' },
    ],
    passages: [{ id: 'p1', text: 'my legs gave up after an hour', score: 1.5 }],
    profileSize: 1,
    retriever: 'r',
    ...change,
  }
}

/** A slice of one response token with a hidden state of two values. */
export function sliceRecord(change: Partial<Slice> = {}): Slice {
  const bytes = new Uint8Array(8)
  return {
    instance: 'a',
    batch: { number: 0, index: 0, size: 1 },
    policyVersion: 0,
    failed: null,
    part: 0,
    parts: 1,
    start: 0,
    count: 1,
    prompt: [1, 2],
    response: [3],
    encoding: 'factored',
    dtype: 'f32',
    width: 2,
    student: bytes,
    teacher: bytes,
    studentIds: new Uint8Array(),
    teacherIds: new Uint8Array(),
    studentHead: 'student head',
    teacherHead: 'teacher head',
    tokenizer: 'tokenizer',
    vocabulary: 10,
    shift: 'row t predicts response token start + t',
    studentLse: [0],
    teacherLse: [0],
    studentLogp: [-1],
    teacherLogp: [-2],
    kl: [0.5],
    truncation: null,
    ...change,
  }
}
