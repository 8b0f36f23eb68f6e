/**
 * Keeps control tokens out of reach of text. A tokenizer turns `<|im_end|>` into the token that ends a turn
 * wherever it stands, so a post that contains those characters could end the user's turn and speak as the
 * system. Here only what the chat template itself writes becomes a control token; the same characters in a
 * message are encoded as ordinary text.
 *
 * How: (1) `disarm` replaces, in messages, the characters that a control token begins or ends with by unused
 * stand-ins, so that no control token can be read there, whatever the template does with the text; (2) the
 * template is rendered; (3) `arm` renames the control tokens that are now in the text, all of them the
 * template's, to names that nobody can type, and puts the characters back; (4) the tokenizer, in which the
 * control tokens carry those same names, encodes the whole text at once. For messages without control tokens
 * the ids are exactly those of the ordinary way.
 */
import { randomUUID } from 'node:crypto'
import { GraspError } from '../../errors/grasp-error.ts'

interface AddedToken {
  readonly id: number
  readonly content: string
  readonly special: boolean
}

/** The parts of tokenizer.json that matter here. */
export interface TokenizerJson {
  readonly added_tokens: readonly AddedToken[]
  readonly pre_tokenizer?: unknown
  readonly model: {
    readonly type?: string
    readonly vocab: Readonly<Record<string, number>> | readonly (readonly [string, number])[]
    readonly merges?: readonly (string | readonly [string, string])[]
    readonly unk_token?: string | null
    readonly continuing_subword_prefix?: string | null
    readonly end_of_word_suffix?: string | null
  }
}

export class ControlTokens {
  /** Token as written → its secret name. */
  readonly #names: ReadonlyMap<string, string>
  readonly #pattern: RegExp
  /** First and last characters of control tokens. */
  readonly #edges: readonly string[]

  /**
   * Control tokens are those that tokenizer.json calls special, and those that the template writes; but not white
   * space, which is text wherever it stands (Gemma's added tokens include the newline).
   */
  constructor(tokenizer: TokenizerJson, template: string) {
    const secret = randomUUID()
    const control = tokenizer.added_tokens.filter(
      ({ special, content }) => special || (content.trim() !== '' && template.includes(content)),
    )
    this.#names = new Map(control.map(token => [token.content, `\ufdd0${secret}:${token.id}\ufdd1`]))
    const longestFirst = [...this.#names.keys()].sort((a, b) => b.length - a.length)
    this.#pattern = new RegExp(longestFirst.map(escapePattern).join('|') || '(?!)', 'gu')
    this.#edges = [...new Set(longestFirst.flatMap(text => [[...text][0]!, [...text].at(-1)!]))]
  }

  /** The control tokens as written. */
  get contents(): ReadonlySet<string> {
    return new Set(this.#names.keys())
  }

  /** The control token that a text written by the template begins with. */
  leading(text: string): string | undefined {
    const match = text.match(this.#pattern)
    return match && text.startsWith(match[0]) ? match[0] : undefined
  }

  /** tokenizer.json with the control tokens under their secret names. */
  rename<T extends TokenizerJson>(tokenizer: T): T {
    const rename = (token: string) => this.#names.get(token) ?? token
    const { vocab, unk_token: unknown } = tokenizer.model
    return {
      ...tokenizer,
      // Matched before normalisation, which might change the names.
      added_tokens: tokenizer.added_tokens.map(token =>
        this.#names.has(token.content)
          ? { ...token, content: rename(token.content), normalized: false }
          : token,
      ),
      model: {
        ...tokenizer.model,
        vocab: Array.isArray(vocab)
          ? vocab.map(([token, score]) => [rename(token), score])
          : Object.fromEntries(Object.entries(vocab).map(([token, id]) => [rename(token), id])),
        ...(unknown != null && { unk_token: rename(unknown) }),
      },
    }
  }

  /** Stand-ins that occur neither in the texts nor in the template: edge character → stand-in. */
  standIns(texts: readonly string[]): ReadonlyMap<string, string> {
    const free = unusedCharacters(texts)
    return new Map(this.#edges.map(edge => [edge, free.next().value!]))
  }

  disarm(text: string, standIns: ReadonlyMap<string, string>): string {
    let result = text
    for (const [edge, standIn] of standIns) result = result.replaceAll(edge, standIn)
    return result
  }

  arm(rendered: string, standIns: ReadonlyMap<string, string>): string {
    let result = rendered.replace(this.#pattern, token => this.#names.get(token)!)
    for (const [edge, standIn] of standIns) result = result.replaceAll(standIn, edge)
    return result
  }
}

/** Unicode's noncharacters first: they have no business in any text; then the private use area. */
function* unusedCharacters(texts: readonly string[]): Generator<string, never> {
  const ranges = [
    [0xfdd2, 0xfdef],
    [0xe000, 0xf8ff],
  ] as const
  for (const [first, last] of ranges) {
    for (let code = first; code <= last; code++) {
      const character = String.fromCharCode(code)
      if (!texts.some(text => text.includes(character))) yield character
    }
  }
  throw new GraspError(
    'RECORD_INVALID',
    'a message uses every private-use character of Unicode; it cannot be told from control tokens safely. ' +
      'Remove them from the text.',
  )
}

function escapePattern(text: string): string {
  return text.replace(/[\\^$.*+?()[\]{}|/]/g, '\\$&')
}
