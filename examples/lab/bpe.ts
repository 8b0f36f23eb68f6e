/**
 * Byte-level BPE (Sennrich et al. 2016; the byte alphabet and word pattern of GPT-2), trained on a small corpus:
 * plain counting, since a few thousand different words are nothing to a loop.
 */

/** GPT-2's words: contractions, letters, digits or signs with at most one space before them, and spaces. */
const WORD = /'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+/gu

/** The printable character that stands for each byte in a byte-level vocabulary. */
export function byteAlphabet(): string[] {
  const printable = (byte: number) =>
    (byte >= 0x21 && byte <= 0x7e) || (byte >= 0xa1 && byte <= 0xac) || (byte >= 0xae && byte <= 0xff)
  let next = 256
  return Array.from({ length: 256 }, (_, byte) => String.fromCharCode(printable(byte) ? byte : next++))
}

export interface Bpe {
  /** The alphabet in byte order, then one symbol a merge. */
  readonly symbols: readonly string[]
  readonly merges: readonly (readonly [string, string])[]
}

/** Learns merges until there are `size` symbols, or no pair occurs twice. Ties go to the pair that sorts first. */
export function trainBpe(texts: Iterable<string>, size: number): Bpe {
  const alphabet = byteAlphabet()
  const counts = new Map<string, number>()
  for (const text of texts) {
    for (const word of text.match(WORD) ?? []) counts.set(word, (counts.get(word) ?? 0) + 1)
  }
  const words = [...counts].map(([word, count]) => ({
    symbols: [...Buffer.from(word, 'utf8')].map(byte => alphabet[byte]!),
    count,
  }))
  const symbols = [...alphabet]
  const merges: [string, string][] = []
  while (symbols.length < size) {
    const best = mostFrequentPair(words)
    if (!best) break
    const [left, right] = best
    merges.push([left, right])
    symbols.push(left + right)
    for (const word of words) word.symbols = merged(word.symbols, left, right)
  }
  return { symbols, merges }
}

function mostFrequentPair(
  words: readonly { symbols: readonly string[]; count: number }[],
): [string, string] | undefined {
  // A space never occurs in a byte-level symbol, so it can join the two halves of a key.
  const pairs = new Map<string, number>()
  for (const { symbols, count } of words) {
    for (let i = 1; i < symbols.length; i++) {
      const key = `${symbols[i - 1]} ${symbols[i]}`
      pairs.set(key, (pairs.get(key) ?? 0) + count)
    }
  }
  let best: string | undefined
  let most = 1
  for (const [key, count] of pairs) {
    if (count > most || (count === most && best !== undefined && key < best)) {
      best = key
      most = count
    }
  }
  return best?.split(' ') as [string, string] | undefined
}

function merged(symbols: readonly string[], left: string, right: string): string[] {
  const out: string[] = []
  for (let i = 0; i < symbols.length; i++) {
    if (symbols[i] === left && symbols[i + 1] === right) {
      out.push(left + right)
      i++
    } else {
      out.push(symbols[i]!)
    }
  }
  return out
}
