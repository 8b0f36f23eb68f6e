/**
 * The passes in which the prompts of a call are read, and which of them several prompts have in common. Where a prompt
 * is cut depends on nothing but what stands before the cut: so one pass is the same for all prompts that agree up to
 * its end (but that what follows is asked for at the end of a prompt only), and what it gave is kept for those that come later, to the bit what reading again would give. That serves
 * several samples of one prompt as well as prompts that begin with the same system text.
 */
import { createHash } from 'node:crypto'

export interface Pass {
  readonly start: number
  /** Exclusive. */
  readonly end: number
  /** Whether the prompt ends with it. */
  readonly last: boolean
  /** Digest of the tokens before `end`, and of `last`. */
  readonly prefix: string
}

export interface PassLimits {
  /** Most tokens of a pass. */
  readonly tokens: number
  /**
   * The first pass ends after the first of these: in chats they end each message, and the first is often the same
   * for all.
   */
  readonly turnEnds: ReadonlySet<number>
  /** Most bytes kept. What has no room is read again. */
  readonly bytes: number
}

/** A pass costs something however short it is: beginnings below this many tokens get none of their own. */
const SHORTEST_FIRST = 32

export class PromptPasses<Result> {
  readonly #limits: PassLimits
  readonly #passes: readonly (readonly Pass[])[]
  /** By prefix: how many reads of the pass are yet to come. */
  readonly #reads = new Map<string, number>()
  readonly #kept = new Map<string, { readonly result: Result; readonly bytes: number }>()
  #bytes = 0

  constructor(prompts: readonly Int32Array[], limits: PassLimits) {
    this.#limits = limits
    this.#passes = prompts.map(prompt => cut(prompt, limits))
    for (const { prefix } of this.#passes.flat()) this.#reads.set(prefix, (this.#reads.get(prefix) ?? 0) + 1)
  }

  /** In order; the last ends with the prompt. */
  of(prompt: number): readonly Pass[] {
    return this.#passes[prompt]!
  }

  /** Whether the result of a pass that was read is kept for another prompt. */
  keeps({ prefix }: Pass): boolean {
    return this.#kept.has(prefix)
  }

  /** Whether a pass is to be read for another prompt after the next. */
  isShared({ prefix }: Pass): boolean {
    return this.#reads.get(prefix)! > 1
  }

  /** Result of one of the passes of `of`, to be asked for once each. @param bytes that keeping it takes. */
  async read({ prefix }: Pass, bytes: number, run: () => Promise<Result>): Promise<Result> {
    const left = this.#reads.get(prefix)! - 1
    this.#reads.set(prefix, left)
    const kept = this.#kept.get(prefix)
    if (kept) {
      if (left === 0) {
        this.#kept.delete(prefix)
        this.#bytes -= kept.bytes
      }
      return kept.result
    }
    const result = await run()
    if (left > 0 && this.#bytes + bytes <= this.#limits.bytes) {
      this.#kept.set(prefix, { result, bytes })
      this.#bytes += bytes
    }
    return result
  }
}

function cut(prompt: Int32Array, { tokens, turnEnds }: PassLimits): Pass[] {
  const passes: Pass[] = []
  const turn = prompt.findIndex(id => turnEnds.has(id)) + 1
  const first = turn >= SHORTEST_FIRST && turn <= tokens ? turn : tokens
  let prefix = ''
  for (let start = 0, end = first; start < prompt.length; start = end, end += tokens) {
    const ids = prompt.slice(start, end)
    prefix = createHash('sha256').update(prefix).update(ids).digest('base64')
    const last = end >= prompt.length
    passes.push({ start, end: start + ids.length, last, prefix: last ? `${prefix} last` : prefix })
  }
  return passes
}
