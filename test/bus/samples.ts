/** Records to write in tests. */
import { lastValueFrom, type Observable, toArray } from 'rxjs'
import { type Output, output } from '../../bus/port.ts'
import type { DeadLetter, Question } from '../../schemas/types.ts'

export function question(id: string, text = 'What to cook tonight?'): Question {
  return {
    id,
    user: 'u1',
    split: 'train',
    category: 'Lifestyle_and_Personal_Development',
    question: text,
    narrative: 'I have an hour.',
    profile: [{ id: 'p1', text: 'I love ginger.' }],
    aspects: [{ aspect: 'spices', reason: 'likes ginger', evidence: 'I love ginger.' }],
  }
}

export function questionOutput(id: string, key = id): Output {
  return output('questions', key, question(id))
}

export function questions(count: number, key: (i: number) => string = i => `key ${i}`): Output[] {
  return Array.from({ length: count }, (_, i) => questionOutput(`q${i}`, key(i)))
}

/** A record of a given weight. */
export function letter(key: string, payload: Uint8Array, message = ''): DeadLetter {
  return { stage: 'test', topic: '', partition: 0, offset: 0, key, code: 'X', message, attempts: 1, payload }
}

export function letterOutput(key: string, bytes: number): Output {
  const payload = new Uint8Array(bytes)
  for (let i = 0; i < bytes; i += 997) payload[i] = i
  return output('deadletters', key, letter(key, payload))
}

export function all<T>(source: Observable<T>): Promise<T[]> {
  return lastValueFrom(source.pipe(toArray()))
}

export async function gather<T>(source: AsyncIterable<T>): Promise<T[]> {
  const items: T[] = []
  for await (const item of source) items.push(item)
  return items
}

/** Resolves when `condition` holds; fails when it does not for so long that it never will. */
export async function until(condition: () => boolean): Promise<void> {
  const start = Date.now()
  while (!condition()) {
    if (Date.now() - start > 60_000) throw new Error(`waited in vain for ${condition}`)
    await new Promise(resolve => setTimeout(resolve, 2))
  }
}

/** Enough turns of the event loop for anything that could still happen to happen. */
export async function settle(): Promise<void> {
  for (let i = 0; i < 20; i++) await new Promise(resolve => setImmediate(resolve))
  await new Promise(resolve => setTimeout(resolve, 30))
}
