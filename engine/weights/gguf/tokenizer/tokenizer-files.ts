/** A GGUF file's tokenizer and chat template as the files that a Hugging Face directory has them in. */
import type { Companions } from '../../companions.ts'
import { specialTokenIds } from '../config-json.ts'
import type { Metadata } from '../metadata.ts'
import { byteLevel } from './byte-level.ts'
import { sentencePiece } from './sentence-piece.ts'
import { type AddedToken, readVocabulary, tokenOf, type Vocabulary } from './vocabulary.ts'

/** The parts of tokenizer.json that depend on the kind of tokenizer. */
export interface TokenizerParts {
  readonly added: readonly AddedToken[]
  readonly normalizer: unknown
  readonly preTokenizer: unknown
  readonly decoder: unknown
  readonly model: unknown
  /** Whether a sequence begins with bos where the file does not say. */
  readonly addBos: boolean
}

const KINDS: Readonly<Record<string, (metadata: Metadata, vocabulary: Vocabulary) => TokenizerParts>> = {
  gpt2: byteLevel,
  llama: sentencePiece,
}

/**
 * @param size rows of the embedding. @param contextLength tokens.
 * @throws GraspError MODEL_INVALID naming the key, MODEL_UNSUPPORTED naming the tokenizer or pre-tokenizer.
 */
export function tokenizerFiles(metadata: Metadata, size: number, contextLength: number): Companions {
  const name = metadata.string('tokenizer.ggml.model')
  const kind = Object.hasOwn(KINDS, name) ? KINDS[name] : undefined
  if (!kind) {
    throw metadata.unsupported(`tokenizer.ggml.model is ${name}; supported: ${Object.keys(KINDS).join(', ')}`)
  }
  const template = metadata.optionalString('tokenizer.chat_template')
  if (template === undefined) {
    throw metadata.invalid('its metadata lack tokenizer.chat_template. Use an instruction-tuned model')
  }
  const parts = kind(metadata, readVocabulary(metadata, size))
  const token = (role: string) => tokenOf(metadata, `tokenizer.ggml.${role}_token_id`)
  const [bos, eos] = [token('bos'), token('eos')]
  const addBos = metadata.optionalBoolean('tokenizer.ggml.add_bos_token') ?? parts.addBos
  const addEos = metadata.optionalBoolean('tokenizer.ggml.add_eos_token') ?? false
  const files: Record<string, unknown> = {
    'tokenizer.json': {
      version: '1.0',
      truncation: null,
      padding: null,
      added_tokens: parts.added,
      normalizer: parts.normalizer,
      pre_tokenizer: parts.preTokenizer,
      post_processor: postProcessor(metadata, addBos ? bos : undefined, addEos ? eos : undefined),
      decoder: parts.decoder,
      model: parts.model,
    },
    'tokenizer_config.json': {
      // Of this class transformers takes tokenizer.json as it stands.
      tokenizer_class: 'PreTrainedTokenizerFast',
      clean_up_tokenization_spaces: false,
      model_max_length: contextLength,
      ...named('bos_token', bos),
      ...named('eos_token', eos),
      ...named('unk_token', token('unknown')),
      ...named('pad_token', token('padding')),
      chat_template: template,
    },
    'generation_config.json': specialTokenIds(metadata),
  }
  return new Map(
    Object.entries(files).map(([name, content]) => [
      name,
      Buffer.from(`${JSON.stringify(content, null, 2)}\n`),
    ]),
  )
}

function named(role: string, token: string | undefined): Record<string, string> {
  return token === undefined ? {} : { [role]: token }
}

/** What plain text gets around it. A chat gets none of it: its template writes what it needs. */
function postProcessor(metadata: Metadata, bos: string | undefined, eos: string | undefined): unknown {
  const ids: Record<string, unknown> = {}
  const special = (token: string | undefined, role: string, type: number) => {
    if (token === undefined) return []
    ids[token] = { id: token, ids: [metadata.number(`tokenizer.ggml.${role}_token_id`)], tokens: [token] }
    return [{ SpecialToken: { id: token, type_id: type } }]
  }
  const around = (id: string, type: number) => [
    ...special(bos, 'bos', type),
    { Sequence: { id, type_id: type } },
    ...special(eos, 'eos', type),
  ]
  const [single, pair] = [around('A', 0), [...around('A', 0), ...around('B', 1)]]
  return bos === undefined && eos === undefined
    ? null
    : { type: 'TemplateProcessing', single, pair, special_tokens: ids }
}
