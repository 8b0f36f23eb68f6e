/** Which files of a repository are fetched. */
import { RECORD_FILE } from './record.ts'

/** What the engine reads, and what transformers wants beside it; not PyTorch's, ONNX's or other formats of the weights. */
const NEEDED = [
  /^(config|generation_config|special_tokens_map|added_tokens|vocab)\.json$/,
  /^merges\.txt$/,
  /^tokenizer[^/]*$/,
  /^chat_template[^/]*$/,
  // Some repositories hold the same weights again in the layout of their makers, as `consolidated`.
  /^(?!consolidated)[^/]*\.safetensors(\.index\.json)?$/,
]

/**
 * @param include patterns as of `hf download`: `*` is any text, `?` any character, a pattern that ends in `/` a whole
 * folder. Where there are some, they alone say what is fetched.
 */
export function wantedBy(include: readonly string[]): (path: string) => boolean {
  const patterns = include.length === 0 ? NEEDED : include.map(toRegExp)
  return path => path !== RECORD_FILE && patterns.some(pattern => pattern.test(path))
}

function toRegExp(pattern: string): RegExp {
  const whole = pattern.endsWith('/') ? `${pattern}*` : pattern
  const escaped = whole.replace(/[\\^$.|+()[\]{}]/g, '\\$&')
  return new RegExp(`^${escaped.replaceAll('*', '.*').replaceAll('?', '.')}$`, 's')
}
