/** Text to token ids and back, for one model. */
import { createHash } from 'node:crypto'
import type { Tokenizer } from '@huggingface/tokenizers'
import { describeError, GraspError } from '../../errors/grasp-error.ts'
import type { Message } from '../port.ts'
import type { Companions } from '../weights/companions.ts'
import { ChatTemplate, findChatTemplate } from './chat-template.ts'
import { CompanionFiles, parseObject } from './companion-files.ts'
import { ControlTokens } from './control-tokens.ts'
import { makeDecoder, makeEncoder } from './library-tokenizer.ts'
import { specialTokens } from './special-tokens.ts'
import { stopTokens } from './stop-tokens.ts'
import { checkTokenizerJson } from './tokenizer-json.ts'

export interface TokenizerSource {
  /** The model's directory or file, for errors. */
  readonly path: string
  readonly companions: Companions
}

export class ChatTokenizer {
  readonly stopTokens: readonly number[]
  /** sha256 of tokenizer.json. */
  readonly tokenizerHash: string
  /** sha256 of the chat template. */
  readonly templateHash: string
  readonly #template: ChatTemplate
  readonly #control: ControlTokens
  /** Knows control tokens by their secret names only. */
  readonly #encoder: Tokenizer
  readonly #decoder: Tokenizer

  private constructor(parts: {
    readonly stopTokens: readonly number[]
    readonly tokenizerHash: string
    readonly template: ChatTemplate
    readonly control: ControlTokens
    readonly encoder: Tokenizer
    readonly decoder: Tokenizer
  }) {
    this.stopTokens = parts.stopTokens
    this.tokenizerHash = parts.tokenizerHash
    this.templateHash = sha256(parts.template.source)
    this.#template = parts.template
    this.#control = parts.control
    this.#encoder = parts.encoder
    this.#decoder = parts.decoder
  }

  /**
   * @param config the model's config.json. @param vocabularySize rows of the embedding.
   * @throws GraspError MODEL_INVALID when a file is missing or wrong.
   */
  static load(
    source: TokenizerSource,
    config: Readonly<Record<string, unknown>>,
    vocabularySize: number,
  ): ChatTokenizer {
    const files = new CompanionFiles(source.path, source.companions)
    const path = files.path('tokenizer.json')
    const text = files.text('tokenizer.json')
    if (text === undefined) {
      throw new GraspError(
        'MODEL_INVALID',
        `${source.path} has no tokenizer.json. If the model ships another tokenizer format, load it with ` +
          "transformers' AutoTokenizer and call save_pretrained on this folder, which writes tokenizer.json.",
      )
    }
    const json = checkTokenizerJson(path, parseObject(path, text))
    const tokenizerConfig = files.json('tokenizer_config.json')
    // Older directories keep the roles of special tokens in a file of their own.
    const special = {
      ...specialTokens(files.json('special_tokens_map.json')),
      ...specialTokens(tokenizerConfig),
    }
    const template = findChatTemplate(files, tokenizerConfig)
    try {
      const decoder = makeDecoder(json, tokenizerConfig)
      const control = new ControlTokens(json, template.source)
      checkVocabulary(path, decoder, vocabularySize)
      const chatTemplate = new ChatTemplate(template.path, template.source, special)
      chatTemplate.check()
      const idOf = (token: string | undefined) =>
        token === undefined ? undefined : decoder.token_to_id(token)
      return new ChatTokenizer({
        tokenizerHash: sha256(text),
        template: chatTemplate,
        control,
        encoder: makeEncoder(path, json, tokenizerConfig, control),
        decoder,
        stopTokens: stopTokens({
          model: source.path,
          vocabularySize,
          config,
          generationConfig: files.json('generation_config.json'),
          tokenizerEos: idOf(special.eos_token),
          endOfTurn: idOf(control.leading(chatTemplate.afterAnswer().trimStart())),
        }),
      })
    } catch (cause) {
      if (cause instanceof GraspError) throw cause
      throw new GraspError('MODEL_INVALID', `${path} cannot be used: ${describeError(cause)}`, { cause })
    }
  }

  /**
   * Ids of a chat, ready for the assistant's turn. Control tokens come from the template alone: none is added, so the
   * beginning of the sequence stands once, where the template writes it.
   */
  encodeChat(messages: readonly Message[]): Int32Array {
    const standIns = this.#control.standIns([
      this.#template.source,
      ...messages.map(message => message.content),
    ])
    const rendered = this.#template.render(
      messages.map(({ role, content }) => ({ role, content: this.#control.disarm(content, standIns) })),
    )
    const text = this.#control.arm(rendered, standIns)
    return Int32Array.from(this.#encoder.encode(text, { add_special_tokens: false }).ids)
  }

  /** Special tokens, and ids that stand for no token, are left out. */
  decode(ids: Int32Array): string {
    const known = Array.from(ids).filter(id => this.#decoder.id_to_token(id) !== undefined)
    if (known.length === 0) return ''
    return this.#decoder.decode(known, { skip_special_tokens: true, clean_up_tokenization_spaces: false })
  }
}

function checkVocabulary(path: string, tokenizer: Tokenizer, vocabularySize: number): void {
  let greatest = -1
  for (const id of tokenizer.get_vocab().values()) greatest = Math.max(greatest, id)
  if (greatest >= vocabularySize) {
    throw new GraspError(
      'MODEL_INVALID',
      `${path} has a token with id ${greatest}, but the model's vocab_size is ${vocabularySize}: they do not belong together`,
    )
  }
}

function sha256(text: string): string {
  return createHash('sha256').update(text).digest('hex')
}
