/** What is told when a topic was written to by another process than the one that thought itself alone there. */
import { GraspError } from '../errors/grasp-error.ts'
import type { Topic } from '../schemas/types.ts'

export function endsMoved(topic: Topic, expected: readonly number[], found: readonly number[]): GraspError {
  return anotherWriter(
    topic,
    undefined,
    `: it ended at ${expected.join(', ')} and now ends at ${found.join(', ')}`,
  )
}

export function anotherWriter(topic: Topic, cause?: unknown, how = ''): GraspError {
  return new GraspError(
    'LOG_UNAVAILABLE',
    `another process writes to ${topic}${how}. Stop one of the two; the same command goes on`,
    { cause },
  )
}
