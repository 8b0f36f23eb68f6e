/** The library's tokenizer, made faster and closer to the Rust one without changing what tokenizer.json says. */
import { Tokenizer } from '@huggingface/tokenizers'
import { BytePairMerges } from './byte-pair-merges.ts'
import type { ControlTokens, TokenizerJson } from './control-tokens.ts'
import { unicodePreTokenizer } from './unicode-pre-tokenizer.ts'

/** What the library calls for each piece. */
interface BytePairModel {
  bpe(piece: string): readonly string[]
}

type TokenizerConfig = Readonly<Record<string, unknown>>

/** Encodes what `control` has armed. @param path names tokenizer.json in errors. */
export function makeEncoder(
  path: string,
  json: TokenizerJson,
  config: TokenizerConfig,
  control: ControlTokens,
): Tokenizer {
  const merges = byteMerges(path, json, control.contents)
  const renamed = control.rename(json)
  const encoder = new Tokenizer(
    {
      ...renamed,
      pre_tokenizer: unicodePreTokenizer(json.pre_tokenizer),
      model: merges ? withoutMerges(renamed.model) : renamed.model,
    },
    config,
  )
  // The library's types lead nowhere in an ES module.
  if (merges) (encoder.model as BytePairModel).bpe = piece => merges.split(piece)
  return encoder
}

/** Only decodes, and looks tokens up: it needs no merges. */
export function makeDecoder(json: TokenizerJson, config: TokenizerConfig): Tokenizer {
  return new Tokenizer({ ...json, model: withoutMerges(json.model) }, config)
}

/** Undefined for models that are not byte-pair encoded, or mark the ends of words: they keep the library's way. */
function byteMerges(
  path: string,
  { model }: TokenizerJson,
  forbidden: ReadonlySet<string>,
): BytePairMerges | undefined {
  if (model.type !== 'BPE' || model.merges === undefined || Array.isArray(model.vocab)) return undefined
  if (model.end_of_word_suffix || model.continuing_subword_prefix) return undefined
  return new BytePairMerges(path, model.vocab as Readonly<Record<string, number>>, model.merges, forbidden)
}

function withoutMerges(model: TokenizerJson['model']): TokenizerJson['model'] {
  return model.merges === undefined ? model : { ...model, merges: [] }
}
