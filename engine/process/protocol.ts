/** What the engine's process and its parent say to each other, over Node's IPC with structured clones. */
import { describeError, type ErrorCode, GraspError } from '../../errors/grasp-error.ts'
import type { Engine, EngineOptions } from '../port.ts'

export type Method = keyof Engine

export type RequestMessage =
  | { readonly id: number; readonly open: EngineOptions }
  | { readonly id: number; readonly method: Method; readonly args: readonly unknown[] }

export type ReplyMessage =
  | { readonly id: number; readonly result: unknown }
  | { readonly id: number; readonly error: ErrorMessage }

/** While a request is unanswered: the thread that runs the engine has just been free to say so. */
export interface SignOfLife {
  readonly alive: true
}

/** What the parent is sent. */
export type ParentMessage = ReplyMessage | SignOfLife

/** Clones lose an error's class and fields. */
export interface ErrorMessage {
  readonly code: ErrorCode
  readonly message: string
  readonly stack: string | undefined
}

export function toErrorMessage(error: unknown): ErrorMessage {
  const stack = error instanceof Error ? error.stack : undefined
  if (error instanceof GraspError) return { code: error.code, message: error.message, stack }
  return { code: 'ENGINE_FAILED', message: `the engine failed: ${describeError(error)}`, stack }
}

/** The stack of the other process is kept as the cause. */
export function fromErrorMessage({ code, message, stack }: ErrorMessage): GraspError {
  const cause = new Error(message)
  if (stack !== undefined) cause.stack = stack
  return new GraspError(code, message, { cause })
}
