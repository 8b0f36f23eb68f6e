/**
 * `tokenizer.ggml.pre`: how a byte-level model cuts text into words, as the published tokenizer.json of those models
 * has it. Named are only those that were checked; another one would give other ids, which no error would show.
 */
import { GPT2_PATTERN } from '../../../tokens/unicode-pre-tokenizer.ts'

export interface PreTokenizerKind {
  /** Applied one after the other; each match is a piece. */
  readonly patterns: readonly string[]
  /** Text is composed first. */
  readonly nfc?: boolean
  /** A piece that is a token needs no merges. */
  readonly ignoreMerges?: boolean
  /** Whether a sequence begins with bos where the file does not say. */
  readonly addBos?: boolean
}

const CONTRACTIONS = "(?i:'s|'t|'re|'ve|'m|'ll|'d)"
const REST = ' ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+'
const WORDS = '[^\\r\\n\\p{L}\\p{N}]?\\p{L}+'

const llama3: PreTokenizerKind = {
  patterns: [`${CONTRACTIONS}|${WORDS}|\\p{N}{1,3}|${REST}`],
  ignoreMerges: true,
  addBos: true,
}

const KINDS: Readonly<Record<string, PreTokenizerKind>> = {
  'llama-bpe': llama3,
  llama3,
  'llama-v3': llama3,
  qwen2: { patterns: [`${CONTRACTIONS}|${WORDS}|\\p{N}|${REST}`], nfc: true },
  smollm: { patterns: ['\\p{N}', GPT2_PATTERN] },
  'gpt-2': { patterns: [GPT2_PATTERN] },
  /** llama.cpp's for files that name no other. */
  default: { patterns: ['[\\p{P}\\$\\+<=>\\^~\\|]+', GPT2_PATTERN, '\\p{N}+', '[0-9][0-9][0-9]'] },
}

export const PRE_TOKENIZERS: readonly string[] = Object.keys(KINDS)

export function preTokenizerKind(name: string): PreTokenizerKind | undefined {
  return Object.hasOwn(KINDS, name) ? KINDS[name] : undefined
}
