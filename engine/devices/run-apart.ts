/**
 * Runs a program in a process of its own and waits only so long: native code that is being tried out may crash or
 * hang, and then the one who asked goes on with a description of what happened.
 */
import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import { describeError } from '../../errors/grasp-error.ts'

/** What the program says through `process.send`. */
export type Word<Finding> =
  /** Where it is now: what a crash or a hang is blamed on. */
  | { readonly stage: string }
  /** Later findings are added to those before. */
  | { readonly finding: Partial<Finding> }
  /** It cannot do what it was asked; what it found until then stands. */
  | { readonly failure: string }

export type Ending =
  | { readonly kind: 'done' }
  | { readonly kind: 'failed'; readonly why: string }
  /** It ended otherwise than it should: `why` names the signal or exit code. */
  | { readonly kind: 'crashed'; readonly why: string; readonly stage: string }
  | { readonly kind: 'hung'; readonly seconds: number; readonly stage: string }

export interface Outcome<Finding> {
  readonly ending: Ending
  readonly finding: Partial<Finding>
  /** What it wrote to its standard error, the last of it. */
  readonly words: string
}

export interface ApartOptions {
  readonly arguments?: readonly string[]
  readonly environment?: NodeJS.ProcessEnv
  readonly timeoutMs: number
}

/** Of what a program writes. */
const MOST_CHARACTERS = 256 * 1024

/** @param program a module of this package, as source or built */
export async function runApart<Finding>(program: URL, options: ApartOptions): Promise<Outcome<Finding>> {
  const { arguments: given = [], environment = process.env, timeoutMs } = options
  const fromSource = program.pathname.endsWith('.ts')
  const child = fork(fileURLToPath(program), [...given], {
    env: environment,
    // JSON has no NaN.
    serialization: 'advanced',
    execArgv: fromSource ? ['--import', import.meta.resolve('tsx')] : [],
    // In a group of its own: a Ctrl-C is the parent's to deal with.
    detached: process.platform !== 'win32',
    stdio: ['ignore', 'ignore', 'pipe', 'ipc'],
  })
  const heard: Heard<Finding> = { stage: 'starting', finding: {}, words: '' }
  child.on('message', (word: Word<Finding>) => {
    if ('stage' in word) heard.stage = word.stage
    else if ('finding' in word) heard.finding = { ...heard.finding, ...word.finding }
    else heard.failure = word.failure
  })
  child.stderr!.setEncoding('utf8').on('data', (text: string) => {
    heard.words = (heard.words + text).slice(-MOST_CHARACTERS)
  })
  const ending = await endingOf(child, heard, timeoutMs)
  return { ending, finding: heard.finding, words: heard.words }
}

interface Heard<Finding> {
  stage: string
  finding: Partial<Finding>
  failure?: string
  words: string
}

async function endingOf(child: ChildProcess, heard: Heard<unknown>, timeoutMs: number): Promise<Ending> {
  let hung = false
  const timer = setTimeout(() => {
    hung = true
    child.kill('SIGKILL')
  }, timeoutMs)
  try {
    // After `exit` what it wrote may still be on its way.
    const [code, signal] = (await once(child, 'close')) as [number | null, NodeJS.Signals | null]
    const { stage, failure } = heard
    if (hung) return { kind: 'hung', seconds: Math.round(timeoutMs / 1000), stage }
    if (signal) return { kind: 'crashed', why: `died of ${signal}`, stage }
    if (code !== 0) return { kind: 'crashed', why: `ended with exit code ${code}`, stage }
    return failure === undefined ? { kind: 'done' } : { kind: 'failed', why: failure }
  } catch (error) {
    // `error` is emitted where no process could be started.
    return { kind: 'failed', why: `no process can be started: ${describeError(error)}` }
  } finally {
    clearTimeout(timer)
  }
}
