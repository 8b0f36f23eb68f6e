/** A child process that answers requests by number. */
import { type ChildProcess, fork } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { describeError, GraspError } from '../../errors/grasp-error.ts'
import { fromErrorMessage, type ReplyMessage, type RequestMessage, toErrorMessage } from './protocol.ts'

/** How long an engine may take to leave by itself once it has closed. */
const GRACE_MS = 5000

interface Pending {
  resolve(result: unknown): void
  reject(error: Error): void
}

type Question<T> = T extends { readonly id: number } ? Omit<T, 'id'> : never

export class EngineChild {
  readonly #process: ChildProcess
  readonly #pending = new Map<number, Pending>()
  readonly #exited: Promise<void>
  #nextId = 0
  #death: GraspError | undefined

  constructor() {
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
    this.#process.on('message', (reply: ReplyMessage) => this.#settle(reply))
    this.#exited = new Promise(resolve => {
      this.#process.once('exit', (code, signal) => {
        this.#die(describeExit(code, signal))
        resolve()
      })
      this.#process.once('error', error => {
        this.#die(`the engine's process cannot be started: ${describeError(error)}`)
        if (this.#process.pid === undefined) resolve()
      })
    })
    this.#hold()
  }

  /** @throws GraspError as the engine threw it; ENGINE_FAILED when the process is gone. */
  ask(question: Question<RequestMessage>): Promise<unknown> {
    if (this.#death) return Promise.reject(this.#death)
    const id = this.#nextId++
    return new Promise((resolve, reject) => {
      this.#pending.set(id, { resolve, reject })
      this.#hold()
      try {
        this.#process.send({ id, ...question }, undefined, undefined, error => {
          // A process that is gone is reported, with the reason, by its exit.
          if (error && this.#process.exitCode === null && this.#process.signalCode === null) {
            this.#settle({ id, error: toErrorMessage(error) })
          }
        })
      } catch (error) {
        // An argument that cannot be cloned.
        this.#settle({ id, error: toErrorMessage(error) })
      }
    })
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

  #die(reason: string): void {
    this.#death ??= new GraspError('ENGINE_FAILED', reason)
    for (const { reject } of this.#pending.values()) reject(this.#death)
    this.#pending.clear()
  }

  /** Only unanswered calls keep the parent's event loop alive. */
  #hold(): void {
    const hold = this.#pending.size > 0
    if (hold) this.#process.ref()
    else this.#process.unref()
    if (hold) this.#process.channel?.ref()
    else this.#process.channel?.unref()
  }
}

function describeExit(code: number | null, signal: NodeJS.Signals | null): string {
  const again = 'Start again: the run goes on from its last checkpoint.'
  if (signal === 'SIGKILL') {
    return (
      "the engine's process was killed (SIGKILL), most often because memory ran out. Lower tokensPerPass or " +
      `sequencesPerPass, or use a machine with more memory. ${again}`
    )
  }
  if (signal) return `the engine's process died of ${signal}, a fault in native code. ${again}`
  return `the engine's process ended with exit code ${code}; its last words are on standard error. ${again}`
}
