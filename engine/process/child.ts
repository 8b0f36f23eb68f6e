/** A child process that answers requests by number, and is killed when it gives no sign of life for too long. */
import { type ChildProcess, fork } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { describeError, GraspError } from '../../errors/grasp-error.ts'
import { deathOf, type Question } from './death.ts'
import { checkSize } from './message-size.ts'
import {
  fromErrorMessage,
  type Method,
  type ParentMessage,
  type ReplyMessage,
  toErrorMessage,
} from './protocol.ts'
import { Watchdog } from './watchdog.ts'

/** How long an engine may take to leave by itself once it has closed. */
const GRACE_MS = 5000

/** At least so long may a process take until it is up, seconds: it has programs to read, maybe from a cold disk. */
const START_SECONDS = 60

/** Questions that are answered at once, also while the engine works on another. */
const ASIDE: ReadonlySet<string> = new Set(['info', 'encodeChat', 'decode', 'interrupt'])

/** Processes that run. One that hangs would not notice that its parent is gone. */
const running = new Set<ChildProcess>()
process.on('exit', () => {
  for (const child of running) child.kill('SIGKILL')
})

interface Pending {
  readonly question: Question
  /** Nobody waits for the answer any more. */
  abandoned?: true
  resolve(result: unknown): void
  reject(error: Error): void
}

export interface ChildOptions {
  /** A process that was asked something and gives no sign of life for so long is killed. Signs come between graphs. */
  readonly hangSeconds: number
}

export class EngineChild {
  readonly #process: ChildProcess
  readonly #pending = new Map<number, Pending>()
  readonly #exited: Promise<void>
  readonly #watchdog: Watchdog
  #nextId = 0
  #isUp = false
  #silent: number | undefined
  #death: GraspError | undefined

  constructor({ hangSeconds }: ChildOptions) {
    const fromSource = import.meta.url.endsWith('.ts')
    this.#process = fork(fileURLToPath(new URL(fromSource ? './host.ts' : './host.js', import.meta.url)), {
      // Arrays of numbers cross as bytes, not as JSON.
      serialization: 'advanced',
      execArgv: fromSource ? ['--import', import.meta.resolve('tsx')] : [],
      // In a group of its own: a Ctrl-C is the parent's to deal with, also while this process is only starting.
      detached: process.platform !== 'win32',
      // Standard output belongs to the parent's results.
      stdio: ['ignore', 2, 2, 'ipc'],
    })
    running.add(this.#process)
    this.#watchdog = new Watchdog(
      () => (this.#isUp ? hangSeconds : Math.max(hangSeconds, START_SECONDS)),
      seconds => {
        this.#silent = seconds
        // Also one that is stopped (SIGSTOP) obeys this.
        this.#process.kill('SIGKILL')
      },
    )
    this.#process.on('message', (message: ParentMessage) => {
      this.#isUp = true
      this.#watchdog.heard()
      if ('id' in message) this.#settle(message)
    })
    this.#exited = new Promise(resolve => {
      this.#process.once('exit', (code, signal) => {
        running.delete(this.#process)
        const silent = this.#silent
        this.#die(deathOf({ code, signal, during: this.#during(), ...(silent !== undefined && { silent }) }))
        resolve()
      })
      this.#process.once('error', error => {
        const message = `the engine's process cannot be started: ${describeError(error)}`
        this.#die(new GraspError('ENGINE_DIED', message, { cause: error }))
        if (this.#process.pid === undefined) resolve()
      })
    })
    this.#hold()
  }

  /** @throws GraspError as the engine threw it; ENGINE_DIED when the process is gone. */
  ask(question: Question): Promise<unknown> {
    if (this.#death) return Promise.reject(this.#death)
    const id = this.#nextId++
    return new Promise((resolve, reject) => {
      this.#pending.set(id, { question, resolve, reject })
      this.#hold()
      try {
        if ('method' in question) checkSize(`the call of ${question.method}`, question.args)
        // A process that takes nothing any more has ended or is about to, and its exit tells why.
        this.#process.send({ id, ...question }, undefined, undefined, () => {})
      } catch (error) {
        // An argument that cannot be cloned, or too much of them.
        this.#settle({ id, error: toErrorMessage(error) })
      }
    })
  }

  /** What was asked of this kind and is not answered fails at once with `why`; the process goes on with it until it notices. */
  abandon(methods: ReadonlySet<Method>, why: GraspError): void {
    for (const pending of this.#pending.values()) {
      if ('open' in pending.question || !methods.has(pending.question.method)) continue
      pending.abandoned = true
      pending.reject(why)
    }
  }

  /** Whether the process is at something that was abandoned, or has it before it. */
  get isWastingTime(): boolean {
    return [...this.#pending.values()].some(({ abandoned }) => abandoned)
  }

  /** Ends the process at once; what is not answered fails with `why`. */
  kill(why: GraspError): void {
    this.#death ??= why
    this.#process.kill('SIGKILL')
  }

  /** Lets the process leave; kills it when it does not. */
  async end(): Promise<void> {
    this.#death ??= new GraspError('ENGINE_FAILED', 'the engine is closed')
    this.#process.ref()
    if (this.#process.connected) this.#process.disconnect()
    const timer = setTimeout(() => this.#process.kill('SIGKILL'), GRACE_MS)
    await this.#exited
    clearTimeout(timer)
  }

  #settle(reply: ReplyMessage): void {
    const pending = this.#pending.get(reply.id)
    this.#pending.delete(reply.id)
    this.#hold()
    if ('error' in reply) pending?.reject(fromErrorMessage(reply.error))
    else pending?.resolve(reply.result)
  }

  /** What the engine is at: the first that it was asked for, since it works on one after the other. */
  #during(): Question | undefined {
    const questions = [...this.#pending.values()].map(({ question }) => question)
    return questions.find(question => 'open' in question || !ASIDE.has(question.method)) ?? questions[0]
  }

  #die(death: GraspError): void {
    this.#watchdog.rest()
    this.#death ??= death
    for (const { reject } of this.#pending.values()) reject(this.#death)
    this.#pending.clear()
  }

  /** Only unanswered calls keep the parent's event loop alive, and are waited for. */
  #hold(): void {
    const hold = this.#pending.size > 0
    if (hold) this.#process.ref()
    else this.#process.unref()
    if (hold) this.#process.channel?.ref()
    else this.#process.channel?.unref()
    if (hold) this.#watchdog.watch()
    else this.#watchdog.rest()
  }
}
