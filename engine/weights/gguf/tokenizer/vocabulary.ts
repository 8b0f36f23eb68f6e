/** The tokens of a GGUF file and what each is for. */
import type { Metadata } from '../metadata.ts'

/** The format's numbers. */
const UNKNOWN = 2
const CONTROL = 3
const USER_DEFINED = 4
const UNUSED = 5
const NORMAL = 1

/** An entry of tokenizer.json's `added_tokens`. */
export interface AddedToken {
  readonly id: number
  readonly content: string
  readonly single_word: false
  readonly lstrip: false
  readonly rstrip: false
  readonly normalized: false
  readonly special: boolean
}

export interface Vocabulary {
  /** Token → id, but for those that only fill the embedding up. */
  readonly ids: ReadonlyMap<string, number>
  /** Control tokens, and those that are looked for in the text before all else. */
  readonly added: readonly AddedToken[]
}

/**
 * @param size rows of the embedding.
 * @throws GraspError MODEL_INVALID
 */
export function readVocabulary(metadata: Metadata, size: number): Vocabulary {
  const tokens = metadata.strings('tokenizer.ggml.tokens')
  if (tokens.length > size) {
    throw metadata.invalid(
      `tokenizer.ggml.tokens has ${tokens.length} tokens, but the embedding ${size} rows`,
    )
  }
  const types = metadata.has('tokenizer.ggml.token_type')
    ? metadata.numbers('tokenizer.ggml.token_type')
    : undefined
  if (types && types.length !== tokens.length) {
    throw metadata.invalid(
      `tokenizer.ggml.token_type has ${types.length} entries for ${tokens.length} tokens`,
    )
  }
  const ids = new Map<string, number>()
  const added: AddedToken[] = []
  for (const [id, content] of tokens.entries()) {
    const type = types?.[id] ?? NORMAL
    if (type === UNUSED) continue
    if (ids.has(content)) {
      throw metadata.invalid(`tokens ${ids.get(content)} and ${id} are both ${JSON.stringify(content)}`)
    }
    ids.set(content, id)
    if (type === CONTROL || type === UNKNOWN) added.push(addedToken(id, content, true))
    if (type === USER_DEFINED) added.push(addedToken(id, content, false))
  }
  return { ids, added }
}

/** The token of an id that the metadata name, or undefined where they name none. @throws GraspError MODEL_INVALID */
export function tokenOf(metadata: Metadata, key: string): string | undefined {
  const id = metadata.optionalNumber(key)
  if (id === undefined) return undefined
  const token = metadata.strings('tokenizer.ggml.tokens')[id]
  if (token === undefined) throw metadata.invalid(`${key} is ${id}, which is no token`)
  return token
}

function addedToken(id: number, content: string, special: boolean): AddedToken {
  return { id, content, single_word: false, lstrip: false, rstrip: false, normalized: false, special }
}
