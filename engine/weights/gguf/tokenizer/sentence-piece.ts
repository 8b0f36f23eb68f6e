/**
 * `tokenizer.ggml.model` llama: SentencePiece's byte-pair encoding. It has scores in place of merges: of all pairs of
 * neighbours that make a token, the one whose token has the highest score is merged first. A merge for every way to
 * cut a token in two others, in the order of the scores, comes to the same.
 */
import type { Metadata } from '../metadata.ts'
import type { TokenizerParts } from './tokenizer-files.ts'
import { tokenOf, type Vocabulary } from './vocabulary.ts'

/** Stands for a space. */
const SPACE = '\u2581'

/** @throws GraspError MODEL_INVALID, MODEL_UNSUPPORTED */
export function sentencePiece(metadata: Metadata, { ids, added }: Vocabulary): TokenizerParts {
  const spacePrefix = metadata.optionalBoolean('tokenizer.ggml.add_space_prefix') ?? true
  if (metadata.optionalBoolean('tokenizer.ggml.remove_extra_whitespaces')) {
    throw metadata.unsupported('tokenizer.ggml.remove_extra_whitespaces is true; supported: false')
  }
  if (metadata.has('tokenizer.ggml.precompiled_charsmap')) {
    throw metadata.unsupported(
      'it has tokenizer.ggml.precompiled_charsmap; supported: text that is not normalised',
    )
  }
  const control = new Set(added.filter(token => token.special).map(token => token.content))
  const spaces = { type: 'Replace', pattern: { String: ' ' }, content: SPACE }
  const prefix = { type: 'Prepend', prepend: SPACE }
  return {
    addBos: true,
    added,
    normalizer: spacePrefix ? { type: 'Sequence', normalizers: [prefix, spaces] } : spaces,
    preTokenizer: null,
    decoder: {
      type: 'Sequence',
      decoders: [
        { type: 'Replace', pattern: { String: SPACE }, content: ' ' },
        { type: 'ByteFallback' },
        { type: 'Fuse' },
        ...(spacePrefix ? [{ type: 'Strip', content: ' ', start: 1, stop: 0 }] : []),
      ],
    },
    model: {
      type: 'BPE',
      dropout: null,
      unk_token: tokenOf(metadata, 'tokenizer.ggml.unknown_token_id') ?? null,
      continuing_subword_prefix: null,
      end_of_word_suffix: null,
      fuse_unk: true,
      byte_fallback: true,
      ignore_merges: false,
      vocab: Object.fromEntries(ids),
      merges: mergesOf(ids, scoresOf(metadata), control),
    },
  }
}

function scoresOf(metadata: Metadata): readonly number[] {
  const scores = metadata.numbers('tokenizer.ggml.scores')
  const { length } = metadata.strings('tokenizer.ggml.tokens')
  if (scores.length === length) return scores
  throw metadata.invalid(`tokenizer.ggml.scores has ${scores.length} entries for ${length} tokens`)
}

/** Of one token's cuts, that with the longest left part comes first, as in transformers' converter. */
function mergesOf(
  ids: ReadonlyMap<string, number>,
  scores: readonly number[],
  control: ReadonlySet<string>,
): [string, string][] {
  const pieces = new Map([...ids].filter(([token]) => !control.has(token)))
  const found: { readonly score: number; readonly left: string; readonly right: string }[] = []
  for (const [token, id] of pieces) {
    for (let cut = 1; cut < token.length; cut++) {
      const [left, right] = [token.slice(0, cut), token.slice(cut)]
      if (pieces.has(left) && pieces.has(right)) found.push({ score: scores[id]!, left, right })
    }
  }
  found.sort((a, b) => b.score - a.score || b.left.length - a.left.length || b.right.length - a.right.length)
  return found.map(({ left, right }) => [left, right])
}
