/** `tokenizer.ggml.model` gpt2: byte-pair encoding of bytes, with its merges in the file. */
import { splitBy } from '../../../tokens/unicode-pre-tokenizer.ts'
import type { Metadata } from '../metadata.ts'
import { PRE_TOKENIZERS, type PreTokenizerKind, preTokenizerKind } from './pre-tokenizers.ts'
import type { TokenizerParts } from './tokenizer-files.ts'
import type { Vocabulary } from './vocabulary.ts'

/** @throws GraspError MODEL_INVALID, MODEL_UNSUPPORTED */
export function byteLevel(metadata: Metadata, { ids, added }: Vocabulary): TokenizerParts {
  const kind = findKind(metadata)
  if (metadata.optionalBoolean('tokenizer.ggml.add_space_prefix')) {
    throw metadata.unsupported(
      'tokenizer.ggml.add_space_prefix is true for a byte-level tokenizer; supported: false',
    )
  }
  const bytes = { type: 'ByteLevel', add_prefix_space: false, trim_offsets: true, use_regex: false }
  return {
    addBos: kind.addBos ?? false,
    added,
    normalizer: kind.nfc ? { type: 'NFC' } : null,
    preTokenizer: { type: 'Sequence', pretokenizers: [...kind.patterns.map(splitBy), bytes] },
    decoder: bytes,
    model: {
      type: 'BPE',
      dropout: null,
      unk_token: null,
      continuing_subword_prefix: null,
      end_of_word_suffix: null,
      fuse_unk: false,
      byte_fallback: false,
      ignore_merges: kind.ignoreMerges ?? false,
      vocab: Object.fromEntries(ids),
      merges: metadata.strings('tokenizer.ggml.merges').map(merge => splitMerge(metadata, merge)),
    },
  }
}

function findKind(metadata: Metadata): PreTokenizerKind {
  const supported = `supported: ${PRE_TOKENIZERS.join(', ')}`
  const name = metadata.optionalString('tokenizer.ggml.pre')
  if (name === undefined) {
    throw metadata.unsupported(
      `its metadata lack tokenizer.ggml.pre, as in files of old converters: convert the model again (${supported})`,
    )
  }
  const kind = preTokenizerKind(name)
  if (!kind) throw metadata.unsupported(`tokenizer.ggml.pre is ${name}; ${supported}`)
  return kind
}

/** The bytes' stand-ins include no space, so a merge has exactly one. */
function splitMerge(metadata: Metadata, merge: string): [string, string] {
  const [left, right, ...more] = merge.split(' ')
  if (left && right && more.length === 0) return [left, right]
  throw metadata.invalid(
    `tokenizer.ggml.merges has ${JSON.stringify(merge)}; expected two tokens with a space between`,
  )
}
