/**
 * Makes the backbone's tokenizer and chat template: byte-level BPE learnt on the pre-training texts, so that
 * every byte has an id and nearly every word of the lab is one token.
 *
 *     node --import tsx examples/lab/make-tokenizer.ts [DIRECTORY]
 */
import { mkdir, writeFile } from 'node:fs/promises'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { trainBpe } from './bpe.ts'
import { openCorpus } from './corpus.ts'

const SPECIAL = ['<|end|>', '<|system|>', '<|user|>', '<|assistant|>']
const VOCABULARY = 1536
const TEXTS = 6000
const SEED = 7

export const BACKBONE = fileURLToPath(new URL('./backbone', import.meta.url))
export const PROMPT = fileURLToPath(new URL('./prompts/answer.md', import.meta.url))

/** A chat template without spaces between turns: the vocabulary knows words by what precedes them. */
const TEMPLATE =
  "{% for message in messages %}{{ '<|' + message['role'] + '|>' + message['content'] + '<|end|>' }}{% endfor %}" +
  "{% if add_generation_prompt %}{{ '<|assistant|>' }}{% endif %}"

export interface TokenizerFiles {
  readonly 'tokenizer.json': string
  readonly 'tokenizer_config.json': string
  readonly 'special_tokens_map.json': string
  readonly 'chat_template.jinja': string
  readonly 'generation_config.json': string
}

export async function makeTokenizer(): Promise<TokenizerFiles> {
  const corpus = await openCorpus(SEED, PROMPT)
  const texts: string[] = []
  for (let i = 0; i < TEXTS; i++) {
    const { messages, answer } = await corpus.example(i)
    texts.push(...messages.map(message => message.content), answer)
  }
  const { symbols, merges } = trainBpe(texts, VOCABULARY - SPECIAL.length)
  const added = SPECIAL.map((content, id) => ({
    id,
    content,
    single_word: false,
    lstrip: false,
    rstrip: false,
    normalized: false,
    special: true,
  }))
  const byteLevel = { type: 'ByteLevel', add_prefix_space: false, trim_offsets: true, use_regex: true }
  const vocabulary = Object.fromEntries([...SPECIAL, ...symbols].map((symbol, id) => [symbol, id]))
  const json = (value: unknown) => `${JSON.stringify(value, null, 1)}\n`
  return {
    'tokenizer.json': json({
      version: '1.0',
      truncation: null,
      padding: null,
      added_tokens: added,
      normalizer: null,
      pre_tokenizer: byteLevel,
      post_processor: null,
      decoder: byteLevel,
      model: {
        type: 'BPE',
        dropout: null,
        unk_token: null,
        continuing_subword_prefix: null,
        end_of_word_suffix: null,
        fuse_unk: false,
        byte_fallback: false,
        ignore_merges: false,
        vocab: vocabulary,
        merges,
      },
    }),
    'tokenizer_config.json': json({
      tokenizer_class: 'PreTrainedTokenizerFast',
      eos_token: '<|end|>',
      pad_token: '<|end|>',
      model_max_length: 512,
      clean_up_tokenization_spaces: false,
      chat_template: TEMPLATE,
    }),
    'special_tokens_map.json': json({ eos_token: '<|end|>', pad_token: '<|end|>' }),
    'chat_template.jinja': TEMPLATE,
    'generation_config.json': json({ eos_token_id: 0, pad_token_id: 0 }),
  }
}

if (process.argv[1] && import.meta.url === pathToFileURL(process.argv[1]).href) {
  const directory = process.argv[2] ?? BACKBONE
  await mkdir(directory, { recursive: true })
  for (const [name, text] of Object.entries(await makeTokenizer()))
    await writeFile(`${directory}/${name}`, text)
}
