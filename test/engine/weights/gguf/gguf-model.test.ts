import assert from 'node:assert/strict'
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { parseModelConfig } from '../../../../engine/weights/model-config.ts'
import { loadModelDirectory } from '../../../../engine/weights/model-directory.ts'
import { readModelFiles } from '../../../../engine/weights/model-files.ts'
import { tensorHash, weightsHash } from '../../../../engine/weights/weights-hash.ts'
import { writeModel } from '../../../../engine/weights/write-model.ts'
import { ggufModel } from '../../../helpers/gguf-model.ts'
import { SMALL_MODELS } from '../../../helpers/small-models.ts'
import { f32, type GgufContent, list, type Typed, text, u32, writeGguf } from '../../../helpers/write-gguf.ts'

let folder: string
before(async () => {
  folder = await mkdtemp(join(tmpdir(), 'grasp-gguf-model-'))
})
after(() => rm(folder, { recursive: true, force: true }))

async function write(content: GgufContent): Promise<string> {
  const path = join(folder, 'model.gguf')
  await writeGguf(path, content)
  return path
}

for (const [name, raw] of Object.entries(SMALL_MODELS)) {
  test(`${name}: weights and configuration are those before the conversion`, async () => {
    const { content, weights } = ggufModel(raw)
    const loaded = await loadModelDirectory(await write(content))
    assert.deepEqual([...loaded.weights.keys()], [...weights.keys()])
    for (const [parameter, tensor] of weights) {
      const found = loaded.weights.get(parameter)!
      if (raw.model_type === 'gemma2' && parameter.endsWith('norm.weight')) {
        // The file holds weight + 1 in f32; less 1 again, what the norm multiplies by has the same bits.
        const data = tensor.data as Float32Array
        for (const [i, value] of (found.data as Float32Array).entries()) {
          assert.equal(Math.fround(1 + value), Math.fround(1 + data[i]!), parameter)
        }
      } else {
        assert.equal(tensorHash(found), tensorHash(tensor), parameter)
      }
    }
    assert.deepEqual(loaded.config, parseModelConfig('config.json', raw))
  })
}

test('what is saved of a GGUF model is a Hugging Face directory with the same weights', async () => {
  const { content } = ggufModel(SMALL_MODELS.qwen3!)
  const gguf = await loadModelDirectory(await write(content))
  const saved = join(folder, 'saved')
  await mkdir(saved)
  await writeModel(saved, gguf, gguf.weights, 'f32')
  const directory = await loadModelDirectory(saved)
  assert.equal(weightsHash(directory.weights), weightsHash(gguf.weights))
  assert.deepEqual(directory.config, gguf.config)
  assert.deepEqual(directory.companions, gguf.companions)
  assert.deepEqual(
    [...gguf.companions.keys()],
    ['tokenizer.json', 'tokenizer_config.json', 'generation_config.json'],
  )
})

test('without the weights, a file whose tensors are of another shape is read all the same', async () => {
  const { content } = ggufModel(SMALL_MODELS.llama!)
  const path = await write({
    ...content,
    tensors: content.tensors!.filter(({ name }) => name === 'token_embd.weight'),
  })
  assert.equal((await readModelFiles(path)).config.layers, 2)
})

test('Gemma 2 of 27B scales its queries by the width of the model', async () => {
  const raw = { ...SMALL_MODELS.gemma2!, num_hidden_layers: 46, query_pre_attn_scalar: 8 }
  const { config } = await loadModelDirectory(await write(ggufModel(raw).content))
  assert.equal(config.attentionScale, 8 ** -0.5)
})

test('stop tokens are all that the metadata name', async () => {
  const { content } = ggufModel(SMALL_MODELS.llama!, { ids: { bos: 0, eos: 2, eot: 1, eom: 2, padding: 0 } })
  const { rawConfig, companions } = await readModelFiles(await write(content))
  assert.deepEqual(rawConfig.eos_token_id, [2, 1])
  assert.deepEqual(JSON.parse(new TextDecoder().decode(companions.get('generation_config.json'))), {
    bos_token_id: 0,
    eos_token_id: [2, 1],
    pad_token_id: 0,
  })
})

type Change = (content: {
  metadata: Record<string, Typed>
  tensors: NonNullable<GgufContent['tensors']>
}) => GgufContent

const meta =
  (change: Record<string, Typed | undefined>): Change =>
  ({ metadata, tensors }) => ({
    metadata: Object.fromEntries(
      Object.entries({ ...metadata, ...change }).filter(
        (entry): entry is [string, Typed] => entry[1] !== undefined,
      ),
    ),
    tensors,
  })
const tensors =
  (change: (all: NonNullable<GgufContent['tensors']>) => NonNullable<GgufContent['tensors']>): Change =>
  ({ metadata, tensors }) => ({ metadata, tensors: change(tensors) })
const without = (name: string) => tensors(all => all.filter(tensor => tensor.name !== name))
const extra = (...names: string[]) =>
  tensors(all => [...all, ...names.map(name => ({ name, type: 0, shape: [1], bytes: new Uint8Array(4) }))])

test('what is missing, misshapen, left over or not supported is named', async () => {
  const cases: [Change, string, RegExp][] = [
    [
      without('blk.1.ffn_up.weight'),
      'MODEL_INVALID',
      /model.gguf lacks the tensor blk.1.ffn_up.weight \[40, 32\] that its metadata call for/,
    ],
    [without('token_embd.weight'), 'MODEL_INVALID', /lacks the tensor token_embd.weight/],
    [
      tensors(all =>
        all.map(tensor => (tensor.name === 'output_norm.weight' ? { ...tensor, shape: [4, 8] } : tensor)),
      ),
      'MODEL_INVALID',
      /output_norm.weight has the shape \[4, 8\]; its metadata call for \[32\]/,
    ],
    [
      extra('blk.2.attn_norm.weight', 'v.patch'),
      'MODEL_INVALID',
      /holds the tensor blk.2.attn_norm.weight and 1 more, for which/,
    ],
    [
      extra('rope_freqs.weight'),
      'MODEL_UNSUPPORTED',
      /rope_freqs.weight holds no divisors of the rotary scaling llama3/,
    ],
    [meta({ 'general.architecture': undefined }), 'MODEL_INVALID', /its metadata lack general.architecture/],
    [
      meta({ 'general.architecture': text('mamba') }),
      'MODEL_UNSUPPORTED',
      /general.architecture is mamba; supported: llama, qwen2, qwen3, gemma2/,
    ],
    [meta({ 'llama.block_count': undefined }), 'MODEL_INVALID', /its metadata lack llama.block_count/],
    [meta({ 'llama.attention.head_count': undefined }), 'MODEL_INVALID', /lack llama.attention.head_count/],
    [
      meta({ 'llama.embedding_length': text('32') }),
      'MODEL_INVALID',
      /llama.embedding_length is "32"; expected a positive whole number/,
    ],
    [
      meta({ 'llama.attention.layer_norm_rms_epsilon': undefined }),
      'MODEL_INVALID',
      /lack llama.attention.layer_norm_rms/,
    ],
    [
      meta({ 'llama.attention.head_count_kv': u32(3) }),
      'MODEL_INVALID',
      /num_attention_heads 4 is no multiple of num_key_value_heads 3/,
    ],
    [
      meta({ 'llama.attention.head_count_kv': list('u32', [2, 4]) }),
      'MODEL_UNSUPPORTED',
      /head_count_kv differs by layer/,
    ],
    [meta({ 'llama.expert_count': u32(8) }), 'MODEL_UNSUPPORTED', /llama.expert_count is 8/],
    [
      meta({ 'llama.attention.value_length': u32(8) }),
      'MODEL_UNSUPPORTED',
      /value_length is 8; supported: the length of a head, 16/,
    ],
    [meta({ 'llama.rope.dimension_count': u32(8) }), 'MODEL_UNSUPPORTED', /rope.dimension_count is 8/],
    [
      meta({ 'llama.rope.scaling.type': text('yarn'), 'llama.rope.scaling.factor': f32(4) }),
      'MODEL_UNSUPPORTED',
      /rope_scaling is "yarn"/,
    ],
    [
      meta({ 'llama.attention.sliding_window': u32(5) }),
      'MODEL_UNSUPPORTED',
      /llama.attention.sliding_window is 5/,
    ],
    [
      meta({ 'tokenizer.ggml.model': text('t5') }),
      'MODEL_UNSUPPORTED',
      /tokenizer.ggml.model is t5; supported: gpt2, llama/,
    ],
    [
      meta({ 'tokenizer.ggml.pre': text('tekken') }),
      'MODEL_UNSUPPORTED',
      /tokenizer.ggml.pre is tekken; supported: llama-bpe, .*qwen2, smollm/,
    ],
    [
      meta({ 'tokenizer.ggml.pre': undefined }),
      'MODEL_UNSUPPORTED',
      /lack tokenizer.ggml.pre, as in files of old converters/,
    ],
    [
      meta({ 'tokenizer.chat_template': undefined }),
      'MODEL_INVALID',
      /lack tokenizer.chat_template. Use an instruction-tuned model/,
    ],
    [meta({ 'tokenizer.ggml.merges': undefined }), 'MODEL_INVALID', /lack tokenizer.ggml.merges/],
    [
      meta({ 'tokenizer.ggml.merges': list('string', ['abc']) }),
      'MODEL_INVALID',
      /merges has "abc"; expected two tokens/,
    ],
    [
      meta({ 'tokenizer.ggml.tokens': list('string', new Array(289).fill('x')) }),
      'MODEL_INVALID',
      /has 289 tokens, but the embedding 288 rows/,
    ],
    [
      meta({ 'tokenizer.ggml.token_type': list('i32', [1]) }),
      'MODEL_INVALID',
      /token_type has 1 entries for 288 tokens/,
    ],
    [
      meta({ 'tokenizer.ggml.eos_token_id': u32(999) }),
      'MODEL_INVALID',
      /tokenizer.ggml.eos_token_id is 999, which is no token/,
    ],
  ]
  const { content } = ggufModel(SMALL_MODELS.llama!)
  for (const [change, code, message] of cases) {
    const path = await write(change({ metadata: content.metadata, tensors: content.tensors! }))
    await assert.rejects(loadModelDirectory(path), { code, message })
  }
})

test('twice the same token is damage', async () => {
  const { content } = ggufModel(SMALL_MODELS.llama!)
  const tokens = content.metadata['tokenizer.ggml.tokens'] as { values: readonly string[] }
  const change = meta({ 'tokenizer.ggml.tokens': list('string', tokens.values.with(70, tokens.values[60]!)) })
  const path = await write(change({ metadata: content.metadata, tensors: content.tensors! }))
  await assert.rejects(loadModelDirectory(path), {
    code: 'MODEL_INVALID',
    message: /tokens 60 and 70 are both "/,
  })
})

test('a path that is neither a directory nor a GGUF file is an error that says what a model is', async () => {
  const path = join(folder, 'model.bin')
  await writeFile(path, 'PK\u0003\u0004 something else')
  await assert.rejects(loadModelDirectory(path), {
    code: 'MODEL_INVALID',
    message: /model.bin is no GGUF file/,
  })
  await assert.rejects(loadModelDirectory(join(folder, 'gone.gguf')), {
    code: 'MODEL_INVALID',
    message: /gone.gguf/,
  })
  const directory = join(folder, 'pulled')
  await mkdir(directory)
  await assert.rejects(loadModelDirectory(directory), {
    message: /A model is a Hugging Face directory .*or a GGUF file/,
  })
  await writeFile(join(directory, 'x-Q8_0.gguf'), '')
  await assert.rejects(loadModelDirectory(directory), {
    message: /There is a GGUF file: name .*pulled.x-Q8_0.gguf itself/,
  })
})
