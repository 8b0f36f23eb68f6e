/**
 * Writes a model of SmolLM2's shape with random weights as a Hugging Face directory, which both sides of bench/growth.ts
 * load: `node --import tsx bench/growth/random-model.ts FOLDER LAYERS VOCABULARY`. A process of its own, since a process
 * starts with the greatest memory of the one that started it.
 */
import { mkdir } from 'node:fs/promises'
import { Tensor } from 'onnxruntime-node'
import { parseModelConfig } from '../../engine/weights/model-config.ts'
import { parameterShapes } from '../../engine/weights/parameter-shapes.ts'
import { writeModel } from '../../engine/weights/write-model.ts'

const [folder, layers, vocabulary] = process.argv.slice(2)
if (folder === undefined) throw new Error('name a folder, the layers and the size of the vocabulary')
/** SmolLM2-135M's, but for what a cell of the table varies. */
const rawConfig = {
  architectures: ['LlamaForCausalLM'],
  model_type: 'llama',
  vocab_size: Number(vocabulary),
  hidden_size: 576,
  intermediate_size: 1536,
  num_hidden_layers: Number(layers),
  num_attention_heads: 9,
  num_key_value_heads: 3,
  head_dim: 64,
  hidden_act: 'silu',
  max_position_embeddings: 8192,
  rms_norm_eps: 1e-5,
  rope_theta: 100000,
  attention_bias: false,
  mlp_bias: false,
  tie_word_embeddings: true,
  bos_token_id: 1,
  eos_token_id: 2,
  pad_token_id: 2,
}

let state = 1
const weights = new Map<string, Tensor>()
for (const [name, dims] of parameterShapes(parseModelConfig('config.json', rawConfig))) {
  const length = dims.reduce((product, dim) => product * dim, 1)
  const data = dims.length === 1 ? new Float32Array(length).fill(1) : uniform(length, 0.035)
  weights.set(name, new Tensor('float32', data, dims))
}
await mkdir(folder, { recursive: true })
await writeModel(folder, { rawConfig, companions: new Map() }, weights, 'f32')

/** Between −width and width; a standard deviation of 0.02 for 0.035. */
function uniform(length: number, width: number): Float32Array {
  const values = new Float32Array(length)
  for (let i = 0; i < length; i++) {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0
    values[i] = (state / 2 ** 31 - 1) * width
  }
  return values
}
