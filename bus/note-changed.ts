import { GraspError } from '../errors/grasp-error.ts'

export function noteChanged(name: string, cause?: unknown): GraspError {
  const message = `another process has changed the note ${name} of the log meanwhile; look again at what it says`
  return new GraspError('NOTE_CHANGED', message, { cause })
}
