/** How an engine's process ended, in words. */
import { GraspError } from '../../errors/grasp-error.ts'
import type { RequestMessage } from './protocol.ts'

export interface Ending {
  readonly code: number | null
  readonly signal: NodeJS.Signals | null
  /** It was killed since it gave no sign of life for so long, seconds. */
  readonly silent?: number
  /** What it was asked for and had not answered. */
  readonly during: Question | undefined
}

type WithoutId<T> = T extends { readonly id: number } ? Omit<T, 'id'> : never
/** A request before it has a number. */
export type Question = WithoutId<RequestMessage>

/** Windows says by exit codes from here on what other systems say by signals. */
const FAULTS = 0xc0000000

/**
 * ENGINE_DIED: a new process may fare better. ENGINE_FAILED where it ended by its own decision before it had answered
 * anything: the next one would too (an installation that lacks a file, say).
 */
export function deathOf({ code, signal, silent, during }: Ending): GraspError {
  if (silent !== undefined) {
    const how = `gave no sign of life for ${silent} s${at(during)} and was killed`
    const advice = 'If its work takes so long on this machine, raise engine.hangSeconds'
    return died(`${how}. ${advice}`)
  }
  if (signal === 'SIGKILL') {
    return died(
      `was killed (SIGKILL), most often because memory ran out,${at(during)}. Use a machine with more memory, a lower ` +
        'model.sequencesPerPass or, in another run, a lower model.tokensPerPass',
    )
  }
  if (signal === 'SIGABRT') {
    return died(
      `gave up (SIGABRT), often for want of memory,${at(during)}; its last words are on standard error`,
    )
  }
  if (signal) return died(`died of ${signal}, a fault in native code,${at(during)}`)
  if (code !== null && code >= FAULTS) {
    return died(`died of a fault in native code (0x${code.toString(16)})${at(during)}`)
  }
  const how = `ended with exit code ${code}${at(during)}; its last words are on standard error`
  if (during && 'open' in during) {
    return new GraspError('ENGINE_FAILED', `the engine's process ${how}`)
  }
  return died(how)
}

function died(how: string): GraspError {
  return new GraspError('ENGINE_DIED', `the engine's process ${how}`)
}

function at(question: Question | undefined): string {
  return ` while it ${question === undefined ? 'was idle' : doing(question)}`
}

const NAMED = 3

/** What a request makes the engine do. */
function doing(question: Question): string {
  if ('open' in question) return `loaded the model ${question.open.path}`
  const [first, second] = question.args
  const count = Array.isArray(first) ? first.length : 0
  switch (question.method) {
    case 'generate': {
      const keys = (second as readonly { readonly key: string }[]).map(({ key }) => key)
      const more = keys.length > NAMED ? ` and ${keys.length - NAMED} more` : ''
      return `sampled responses to ${keys.slice(0, NAMED).join(', ')}${more}`
    }
    case 'score':
      return `scored ${count} ${count === 1 ? 'response' : 'responses'}`
    case 'accumulate':
      return `took the gradient of ${count} ${count === 1 ? 'response' : 'responses'}`
    case 'update':
      return 'updated the weights'
    case 'saveCheckpoint':
      return `saved the checkpoint ${first}`
    case 'loadCheckpoint':
      return `loaded the checkpoint ${first}`
    case 'loadPolicy':
      return `loaded policy ${first} from ${second}`
    case 'exportPolicy':
      return `wrote policy ${first} to ${second}`
    case 'encodeChat':
      return 'turned a prompt into tokens'
    case 'decode':
      return 'turned tokens into text'
    case 'weightsHash':
      return 'hashed the weights'
    default:
      return `answered ${question.method}`
  }
}
