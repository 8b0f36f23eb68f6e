/**
 * Writes a tiny Llama with random weights as a Hugging Face directory: config.json, model.safetensors,
 * tokenizer.json (byte-level BPE, 256 bytes + some merges + 3 special tokens) and a ChatML template.
 * The same options give the same bytes.
 */
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Tensor } from 'onnxruntime-node'
import { parseModelConfig } from '../../engine/weights/model-config.ts'
import { parameterShapes } from '../../engine/weights/parameter-shapes.ts'
import { writeSafetensors } from '../../engine/weights/safetensors.ts'

export interface TinyModelOptions {
  readonly layers?: number
  readonly hiddenSize?: number
  readonly intermediateSize?: number
  readonly heads?: number
  readonly keyValueHeads?: number
  readonly headDim?: number
  /** Rows of the embedding; at least the tokenizer's 288. */
  readonly vocabularySize?: number
  readonly contextLength?: number
  readonly tiedHead?: boolean
  readonly dtype?: 'f32' | 'bf16'
  readonly seed?: number
  /** Standard deviation of the weights. Large values make sharp distributions. */
  readonly scale?: number
  readonly template?: string
  /** Files to write the tensors to; more than 1 writes an index. */
  readonly shards?: number
  /** Overrides of config.json. */
  readonly config?: Readonly<Record<string, unknown>>
}

export interface TinyModel {
  readonly path: string
  remove(): Promise<void>
}

export const STOP_TOKEN = '<|im_end|>'

export const CHATML =
  "{% for message in messages %}{{ '<|im_start|>' + message['role'] + '\n' + message['content'] + '<|im_end|>\n' }}" +
  "{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}"

/** Like Gemma's: it refuses a system message and trims what is said. */
export const CHATML_WITHOUT_SYSTEM =
  "{% if messages[0]['role'] == 'system' %}{{ raise_exception('System role not supported') }}{% endif %}" +
  "{% for message in messages %}{{ '<|im_start|>' + message['role'] + '\n' + (message['content'] | trim) + '<|im_end|>\n' }}" +
  "{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}"

const SPECIAL = ['<|endoftext|>', '<|im_start|>', STOP_TOKEN]

/** Merges in order of rank, over the byte-level alphabet (Ġ is the space, Ċ the newline). */
const MERGES = (
  'Ġ t,Ġ a,h e,i n,r e,o n,Ġt he,e r,Ġ s,a t,e n,o r,Ġ w,Ġ b,i s,a n,o u,Ġ o,in g,u s,us er,s is,Ġ Ġ,Ċ Ċ,' +
  'Ġa n,Ġan d,Ġo f,m an,Ġ h'
).split(',')

/** Writes the model into a new temporary folder. */
export async function makeTinyModel(options: TinyModelOptions = {}): Promise<TinyModel> {
  const path = await mkdtemp(join(tmpdir(), 'grasp-tiny-model-'))
  await writeTinyModel(path, options)
  return { path, remove: () => rm(path, { recursive: true, force: true }) }
}

export async function writeTinyModel(path: string, options: TinyModelOptions = {}): Promise<void> {
  await mkdir(path, { recursive: true })
  const raw = rawConfig(options)
  const config = parseModelConfig('config.json', raw)
  const random = generator(options.seed ?? 1)
  const weights = new Map<string, Tensor>()
  for (const [name, shape] of parameterShapes(config)) {
    const size = shape.reduce((product, length) => product * length, 1)
    const norm = name.endsWith('norm.weight')
    const scale = (options.scale ?? 0.15) * Math.sqrt(3)
    const data = Float32Array.from({ length: size }, () =>
      norm ? 1 + 0.2 * (random() - 0.5) : scale * (2 * random() - 1),
    )
    weights.set(name, new Tensor('float32', data, shape))
  }
  await writeWeights(path, weights, options.dtype ?? 'f32', options.shards ?? 1)
  await writeJson(join(path, 'config.json'), raw)
  await writeJson(join(path, 'generation_config.json'), { bos_token_id: 0, eos_token_id: 2, pad_token_id: 0 })
  await writeJson(join(path, 'tokenizer.json'), tinyTokenizerJson())
  await writeJson(join(path, 'tokenizer_config.json'), {
    tokenizer_class: 'GPT2Tokenizer',
    bos_token: SPECIAL[0],
    eos_token: STOP_TOKEN,
    pad_token: SPECIAL[0],
    clean_up_tokenization_spaces: false,
    model_max_length: config.contextLength,
  })
  await writeFile(join(path, 'chat_template.jinja'), options.template ?? CHATML)
}

function rawConfig(options: TinyModelOptions): Record<string, unknown> {
  return {
    architectures: ['LlamaForCausalLM'],
    model_type: 'llama',
    hidden_size: options.hiddenSize ?? 32,
    intermediate_size: options.intermediateSize ?? 48,
    num_hidden_layers: options.layers ?? 2,
    num_attention_heads: options.heads ?? 4,
    num_key_value_heads: options.keyValueHeads ?? 2,
    head_dim: options.headDim ?? 16,
    hidden_act: 'silu',
    vocab_size: options.vocabularySize ?? SPECIAL.length + 256 + MERGES.length,
    max_position_embeddings: options.contextLength ?? 256,
    rms_norm_eps: 1e-5,
    rope_theta: 10000,
    rope_scaling: null,
    attention_bias: false,
    mlp_bias: false,
    tie_word_embeddings: options.tiedHead ?? true,
    bos_token_id: 0,
    eos_token_id: 2,
    pad_token_id: 0,
    torch_dtype: options.dtype === 'bf16' ? 'bfloat16' : 'float32',
    ...options.config,
  }
}

async function writeWeights(
  path: string,
  weights: ReadonlyMap<string, Tensor>,
  dtype: 'f32' | 'bf16',
  shards: number,
): Promise<void> {
  const write = { dtype, metadata: { format: 'pt' } }
  if (shards === 1) {
    await writeSafetensors(join(path, 'model.safetensors'), weights, write)
    return
  }
  const names = [...weights.keys()]
  const index: Record<string, string> = {}
  for (let shard = 0; shard < shards; shard++) {
    const file = `model-${String(shard + 1).padStart(5, '0')}-of-${String(shards).padStart(5, '0')}.safetensors`
    const part = new Map(
      names.filter((_, i) => i % shards === shard).map(name => [name, weights.get(name)!] as const),
    )
    for (const name of part.keys()) index[name] = file
    await writeSafetensors(join(path, file), part, write)
  }
  await writeJson(join(path, 'model.safetensors.index.json'), { metadata: {}, weight_map: index })
}

/** 256 bytes, some merges and 3 special tokens. */
export function tinyTokenizerJson() {
  const vocab: Record<string, number> = {}
  for (const token of SPECIAL) vocab[token] = Object.keys(vocab).length
  for (const symbol of byteAlphabet()) vocab[symbol] = Object.keys(vocab).length
  for (const merge of MERGES) vocab[merge.replace(' ', '')] = Object.keys(vocab).length
  return {
    version: '1.0',
    truncation: null,
    padding: null,
    added_tokens: SPECIAL.map((content, id) => ({
      id,
      content,
      single_word: false,
      lstrip: false,
      rstrip: false,
      normalized: false,
      special: true,
    })),
    normalizer: null,
    pre_tokenizer: { type: 'ByteLevel', add_prefix_space: false, trim_offsets: true, use_regex: true },
    post_processor: null,
    decoder: { type: 'ByteLevel', add_prefix_space: true, trim_offsets: true, use_regex: true },
    model: {
      type: 'BPE',
      dropout: null,
      unk_token: null,
      continuing_subword_prefix: null,
      end_of_word_suffix: null,
      fuse_unk: false,
      byte_fallback: false,
      ignore_merges: false,
      vocab,
      merges: MERGES.map(m => m.split(' ')),
    },
  }
}

/** GPT-2's printable stand-ins for the 256 bytes, in the order of the bytes. */
function byteAlphabet(): string[] {
  let next = 256
  return Array.from({ length: 256 }, (_, byte) => {
    const printable = (byte >= 33 && byte <= 126) || (byte >= 161 && byte <= 172) || byte >= 174
    return String.fromCharCode(printable ? byte : next++)
  })
}

/** mulberry32: uniform in [0, 1). */
function generator(seed: number): () => number {
  let state = seed >>> 0
  return () => {
    state = (state + 0x6d2b79f5) >>> 0
    let t = Math.imul(state ^ (state >>> 15), state | 1)
    t ^= t + Math.imul(t ^ (t >>> 7), t | 61)
    return ((t ^ (t >>> 14)) >>> 0) / 4294967296
  }
}

async function writeJson(path: string, value: unknown): Promise<void> {
  await writeFile(path, `${JSON.stringify(value, null, 2)}\n`)
}
