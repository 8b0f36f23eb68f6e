/** A tokenizer.json as the metadata that llama.cpp's converter makes of it. */
import { list, type Typed, text, u32 } from './write-gguf.ts'

interface TokenizerJson {
  readonly added_tokens: readonly {
    readonly id: number
    readonly content: string
    readonly special: boolean
  }[]
  readonly model: {
    readonly vocab: Readonly<Record<string, number>>
    readonly merges: readonly (string | readonly string[])[]
  }
}

export interface TokenizerOptions {
  /** `tokenizer.ggml.pre` of a byte-level tokenizer; absent: SentencePiece. */
  readonly pre?: string
  /** Rows of the embedding. */
  readonly size: number
  readonly template?: string
  readonly ids?: Readonly<Record<string, number>>
}

const [NORMAL, UNKNOWN, CONTROL, USER_DEFINED, UNUSED, BYTE] = [1, 2, 3, 4, 5, 6]

export function tokenizerMetadata(json: TokenizerJson, options: TokenizerOptions): Record<string, Typed> {
  const { pre, size, template, ids = {} } = options
  const tokens = Array.from({ length: size }, (_, id) => `[PAD${id}]`)
  const types = new Array<number>(size).fill(UNUSED)
  for (const [token, id] of Object.entries(json.model.vocab)) {
    tokens[id] = token
    types[id] = pre === undefined && /^<0x[0-9A-F]{2}>$/.test(token) ? BYTE : NORMAL
  }
  for (const { id, content, special } of json.added_tokens) {
    tokens[id] = content
    types[id] = special ? (content === '<unk>' ? UNKNOWN : CONTROL) : USER_DEFINED
  }
  return {
    'tokenizer.ggml.model': text(pre === undefined ? 'llama' : 'gpt2'),
    'tokenizer.ggml.pre': text(pre ?? 'default'),
    'tokenizer.ggml.tokens': list('string', tokens),
    'tokenizer.ggml.token_type': list('i32', types),
    ...(pre === undefined
      ? { 'tokenizer.ggml.scores': list('f32', scores(json, tokens, types)) }
      : {
          'tokenizer.ggml.merges': list(
            'string',
            json.model.merges.map(merge => sides(merge).join(' ')),
          ),
        }),
    ...(template !== undefined && { 'tokenizer.chat_template': text(template) }),
    ...Object.fromEntries(
      Object.entries(ids).map(([role, id]) => [`tokenizer.ggml.${role}_token_id`, u32(id)]),
    ),
  }
}

/** As SentencePiece's training gives them: the earlier a piece was made, the higher. What was defined has 0. */
function scores({ model }: TokenizerJson, tokens: readonly string[], types: readonly number[]): number[] {
  const made = new Map<string, number>()
  for (const [rank, merge] of model.merges.entries()) {
    const piece = sides(merge).join('')
    if (!made.has(piece)) made.set(piece, -1 - rank)
  }
  return tokens.map((token, id) => (types[id] === NORMAL ? (made.get(token) ?? -1e6 - id) : 0))
}

function sides(merge: string | readonly string[]): readonly string[] {
  return typeof merge === 'string' ? merge.split(' ') : merge
}
