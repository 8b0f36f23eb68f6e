/**
 * Two of the library's pre-tokenizers split with JavaScript's own classes: `\d` knows no digits but ASCII's, and `\s`
 * counts a byte order mark as a space and the control character U+0085 not. The Rust tokenizers, with which models are
 * trained, go by Unicode. Here both are put as a Split by pattern, whose classes the library does translate.
 */

/** GPT-2's pattern, which the ByteLevel pre-tokenizer holds within itself. */
export const GPT2_PATTERN =
  "'s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+| ?[^\\s\\p{L}\\p{N}]+|\\s+(?!\\S)|\\s+"

type PreTokenizer = Readonly<Record<string, unknown>> | null

/** @param preTokenizer of tokenizer.json. @returns the same with Unicode's classes. */
export function unicodePreTokenizer(preTokenizer: unknown): unknown {
  const parts = flatten(preTokenizer as PreTokenizer)
  return parts.length === 0 ? null : { type: 'Sequence', pretokenizers: parts }
}

/** Each match, and what is between two matches, is a piece. */
export function splitBy(pattern: string): Readonly<Record<string, unknown>> {
  return { type: 'Split', pattern: { Regex: pattern }, behavior: 'Isolated', invert: false }
}

function flatten(part: PreTokenizer): PreTokenizer[] {
  if (part == null) return []
  if (part.type === 'Sequence') return (part.pretokenizers as PreTokenizer[]).flatMap(flatten)
  if (part.type === 'Digits') return [splitBy(part.individual_digits ? '\\p{N}' : '\\p{N}+')]
  // With a prefix space the order would matter; no model of the supported families has one.
  if (part.type === 'ByteLevel' && part.use_regex !== false && !part.add_prefix_space) {
    return [splitBy(GPT2_PATTERN), { ...part, use_regex: false }]
  }
  return [part]
}
