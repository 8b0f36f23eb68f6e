/**
 * A model's chat template (Jinja), as transformers renders it. It comes with a model, so it is a program that nobody
 * here has read: it reaches nothing but what it is given, and it must end.
 */
import { Template } from '@huggingface/jinja'
import { describeError, GraspError } from '../../errors/grasp-error.ts'
import type { Message } from '../port.ts'
import type { CompanionFiles } from './companion-files.ts'
import { TimeOver, withinTime } from './within-time.ts'

/**
 * Put before a template. Some write today's date, which would make prompts differ from day to day: it is always this
 * one. The library's `range` makes a list of all that is asked for, however much memory it takes.
 */
const PRELUDE = new Template(
  '{% macro strftime_now(format) %}26 Jul 2024{% endmacro %}{% set range = bounded_range %}',
)

/** Templates take milliseconds. */
const LIMIT_SECONDS = 10

/** Most numbers of a `range` in Jinja's own sandbox, which transformers renders in. */
const MOST_IN_RANGE = 100_000

export class ChatTemplate {
  readonly source: string
  readonly #path: string
  readonly #seconds: number
  readonly #template: Template
  readonly #variables: Readonly<Record<string, unknown>>
  /** Some templates refuse a system message, some drop it: their system text goes into the user's turn. */
  readonly #takesSystem: boolean

  /**
   * @param specialTokens bos_token, eos_token and the like, as templates name them. @param seconds most that reading or
   * rendering the template may take.
   * @throws GraspError MODEL_INVALID
   */
  constructor(
    path: string,
    source: string,
    specialTokens: Readonly<Record<string, string>>,
    seconds = LIMIT_SECONDS,
  ) {
    this.source = source
    this.#path = path
    this.#seconds = seconds
    try {
      this.#template = this.#within(() => new Template(source))
      this.#template.parsed.body.unshift(...PRELUDE.parsed.body)
    } catch (cause) {
      if (cause instanceof GraspError) throw cause
      // The parser falls over its end where one is missing.
      const why = cause instanceof TypeError ? 'it ends too early' : describeError(cause)
      throw new GraspError('MODEL_INVALID', `${path}: the chat template is wrong: ${why}`, { cause })
    }
    this.#variables = specialTokens
    this.#takesSystem = this.#probeSystem()
  }

  /**
   * The text that the model reads, up to where the assistant's answer starts.
   * @throws GraspError PROMPT_INVALID where the template raises an exception, MODEL_INVALID where it does not end
   */
  render(messages: readonly Message[]): string {
    const turns = this.#takesSystem ? messages : mergeSystem(messages)
    try {
      return this.#render(turns, true)
    } catch (cause) {
      if (cause instanceof GraspError) throw cause
      const roles = turns.map(message => message.role).join(', ')
      throw new GraspError(
        'PROMPT_INVALID',
        `${this.#path}: the chat template refuses the roles ${roles}: ${describeError(cause)}`,
        { cause },
      )
    }
  }

  /** @throws GraspError MODEL_INVALID when not even a chat of one message comes out as it should. */
  check(): void {
    let chat: string
    try {
      chat = this.#render([{ role: 'user', content: 'userprobe' }], true)
    } catch (cause) {
      if (cause instanceof GraspError) throw cause
      throw new GraspError(
        'MODEL_INVALID',
        `${this.#path}: the chat template fails on a chat of one message: ${describeError(cause)}`,
        { cause },
      )
    }
    if (chat.includes('userprobe')) return
    const what = chat.trim() === '' ? 'nothing' : JSON.stringify(chat.slice(0, 100))
    throw new GraspError(
      'MODEL_INVALID',
      `${this.#path}: the chat template leaves out what the user says: of a message it makes ${what}`,
    )
  }

  /** What the template writes behind an assistant's answer; empty where it refuses such a chat. */
  afterAnswer(): string {
    const answer = 'answerprobe'
    try {
      const chat = this.#render(
        [
          { role: 'user', content: 'userprobe' },
          { role: 'assistant', content: answer },
        ],
        false,
      )
      const end = chat.lastIndexOf(answer)
      return end < 0 ? '' : chat.slice(end + answer.length)
    } catch (error) {
      if (error instanceof GraspError) throw error
      return ''
    }
  }

  #render(messages: readonly Message[], generationPrompt: boolean): string {
    const variables = {
      bounded_range: boundedRange,
      // As transformers passes them: defined, and none.
      tools: null,
      documents: null,
      ...this.#variables,
      messages,
      add_generation_prompt: generationPrompt,
    }
    return this.#within(() => this.#template.render(variables))
  }

  #within<T>(work: () => T): T {
    try {
      return withinTime(this.#seconds, work)
    } catch (cause) {
      if (!(cause instanceof TimeOver)) throw cause
      throw new GraspError(
        'MODEL_INVALID',
        `${this.#path}: the chat template is ${cause.message}: it seems to loop for ever. Take the template of the ` +
          "model's first publisher, or write chat_template.jinja",
        { cause },
      )
    }
  }

  #probeSystem(): boolean {
    try {
      const probe = this.#render(
        [
          { role: 'system', content: 'systemprobe' },
          { role: 'user', content: 'userprobe' },
        ],
        true,
      )
      return probe.includes('systemprobe')
    } catch (error) {
      if (error instanceof GraspError) throw error
      // The template raises an exception at a system message, as Gemma's does.
      return false
    }
  }
}

/** @throws GraspError MODEL_INVALID where the model has no chat template. */
export function findChatTemplate(
  files: CompanionFiles,
  tokenizerConfig: Readonly<Record<string, unknown>>,
): { path: string; source: string } {
  const source = files.text('chat_template.jinja')
  if (source !== undefined) return { path: files.path('chat_template.jinja'), source }
  const inline = tokenizerConfig.chat_template
  const named = Array.isArray(inline) ? inline.find(entry => entry?.name === 'default')?.template : inline
  if (typeof named === 'string') return { path: files.path('tokenizer_config.json'), source: named }
  throw new GraspError(
    'MODEL_INVALID',
    `${files.model} has no chat template: neither chat_template.jinja nor chat_template in tokenizer_config.json. ` +
      'Use an instruction-tuned model, or write chat_template.jinja.',
  )
}

function boundedRange(start: number, stop?: number, step = 1): number[] {
  const [first, end] = stop === undefined ? [0, start] : [start, stop]
  const count = Math.max(0, Math.ceil((end - first) / step))
  if (!(count <= MOST_IN_RANGE)) {
    throw new Error(`range() of more than ${MOST_IN_RANGE} numbers (${first}, ${end}, ${step})`)
  }
  return Array.from({ length: count }, (_, i) => first + i * step)
}

function mergeSystem(messages: readonly Message[]): Message[] {
  const merged: Message[] = []
  let system = ''
  for (const { role, content } of messages) {
    if (role === 'system') {
      system += `${content}\n\n`
    } else if (system && role === 'user') {
      merged.push({ role, content: system + content })
      system = ''
    } else {
      merged.push({ role, content })
    }
  }
  if (system) merged.push({ role: 'user', content: system.trimEnd() })
  return merged
}
