/**
 * Text to vectors with a sentence-embedding model in transformers.js' layout, read from disk only:
 * DIR/{config.json, tokenizer.json, tokenizer_config.json, onnx/model*.onnx}.
 *
 * One text a run is the default: on CPUs it is the quickest, and the vector then depends on the text alone.
 * In a batch, int8 models scale activations over the whole batch, so a text's vector depends on its company
 * (cosine to the vector of a single run down to 0.99).
 */
import { createHash } from 'node:crypto'
import { createReadStream } from 'node:fs'
import { access } from 'node:fs/promises'
import { join, resolve } from 'node:path'
import { pipeline } from 'node:stream/promises'
import { describeError, GraspError } from '../errors/grasp-error.ts'

/** Precision of the ONNX file, and so which file is read. */
export type EmbedderDtype = 'fp32' | 'fp16' | 'q8' | 'int8' | 'uint8' | 'q4' | 'q4f16'

export interface EmbedderOptions {
  /** The model's directory. */
  readonly path: string
  /** How token vectors become one: their mean, or the first token's. */
  readonly pooling: 'mean' | 'cls'
  /** Scale vectors to length 1, so that dot products are cosines. */
  readonly normalise: boolean
  readonly dtype: EmbedderDtype
  /** Tokens of a text that are read, special ones included; at most (and by default) what the model takes. */
  readonly maxTokens?: number
  /** Texts a run. */
  readonly batch?: number
  /** Threads of one run; by default the runtime's choice. */
  readonly threads?: number
}

export interface Embedder {
  /** Hash of the model's files and of every setting that the vectors depend on. */
  readonly hash: string
  /** One vector a text, all of the same length, in the order of the texts. */
  embed(texts: readonly string[]): Promise<Float32Array[]>
  close(): Promise<void>
}

const FILE: Record<EmbedderDtype, string> = {
  fp32: 'model',
  fp16: 'model_fp16',
  q8: 'model_quantized',
  int8: 'model_int8',
  uint8: 'model_uint8',
  q4: 'model_q4',
  q4f16: 'model_q4f16',
}

const SESSION = {
  // Patterns are kept for every length ever seen, which for texts is a leak.
  enableMemPattern: false,
  // Waiting threads block instead of spinning: the language model's process wants the same cores.
  extra: { session: { intra_op: { allow_spinning: '0' } } },
}

/**
 * What a token takes at most in characters, for cutting very long texts before they are tokenised. English
 * takes 4 to 5; a text that exceeds this all along (runs of spaces, of unbroken symbols) loses its tail.
 */
const CHARACTERS_PER_TOKEN = 32

export async function loadEmbedder(options: EmbedderOptions): Promise<Embedder> {
  const path = resolve(options.path)
  const { pooling, normalise, dtype, batch = 1 } = options
  if (!Number.isInteger(batch) || batch < 1)
    throw failed(path, `batch must be a whole number from 1, got ${batch}`)
  const weights = join('onnx', `${FILE[dtype]}.onnx`)
  const externalData = await exists(join(path, `${weights}_data`))
  const files = ['config.json', 'tokenizer.json', 'tokenizer_config.json', weights]
  if (externalData) files.push(`${weights}_data`)
  const filesHash = await hashFiles(path, files, dtype)

  // Imported here: the library takes a second to load, and most runs do not need it.
  const { AutoModel, AutoTokenizer, env } = await import('@huggingface/transformers')
  env.allowRemoteModels = false
  const load = async () => {
    const tokenizer = await AutoTokenizer.from_pretrained(path, { local_files_only: true })
    const model = await AutoModel.from_pretrained(path, {
      local_files_only: true,
      dtype,
      device: 'cpu',
      use_external_data_format: externalData,
      session_options: {
        ...(options.threads !== undefined && { intraOpNumThreads: options.threads }),
        ...SESSION,
      },
    })
    return { tokenizer, model }
  }
  const { tokenizer, model } = await load().catch(error => {
    throw failed(path, `cannot load the embedding model: ${describeError(error)}`, error)
  })
  const maxTokens = tokenLimit(path, options.maxTokens, [
    (model.config as unknown as { max_position_embeddings?: number }).max_position_embeddings,
    tokenizer.model_max_length,
  ])

  const identity = { version: 1, files: filesHash, pooling, normalise, dtype, maxTokens, batch }
  const run = async (texts: readonly string[]): Promise<Float32Array[]> => {
    const inputs = tokenizer(
      texts.map(text => cut(text, maxTokens * CHARACTERS_PER_TOKEN)),
      { padding: true, truncation: true, max_length: maxTokens },
    )
    const outputs = await model(inputs)
    const states = outputs.last_hidden_state ?? outputs.token_embeddings
    if (!states) {
      const names = Object.keys(outputs).join(', ')
      throw new Error(`the model gives no last_hidden_state or token_embeddings, only ${names}`)
    }
    const vectors = pool(states.data, states.dims, inputs.attention_mask.data, pooling)
    return normalise ? vectors.map(unit) : vectors
  }

  return {
    hash: createHash('sha256').update(JSON.stringify(identity)).digest('hex'),
    async embed(texts) {
      const vectors = new Array<Float32Array>(texts.length)
      // Neighbours in length share a run, so little of it is padding.
      const order = texts.map((_, index) => index)
      if (batch > 1) order.sort((a, b) => texts[a]!.length - texts[b]!.length)
      for (let start = 0; start < order.length; start += batch) {
        const members = order.slice(start, start + batch)
        const made = await run(members.map(index => texts[index]!)).catch(error => {
          throw failed(path, `cannot embed: ${describeError(error)}`, error)
        })
        for (const [place, index] of members.entries()) vectors[index] = made[place]!
        // A run blocks the thread; heartbeats and signals get their turn between runs.
        await new Promise(setImmediate)
      }
      return vectors
    },
    async close() {
      await model.dispose()
    },
  }
}

/** `states` [B, T, D] to B vectors of D: the mean over tokens whose mask is 1, or the first token's. */
function pool(
  states: Float32Array,
  dims: readonly number[],
  mask: ArrayLike<bigint>,
  pooling: 'mean' | 'cls',
): Float32Array[] {
  const [rows, tokens, width] = dims as [number, number, number]
  return Array.from({ length: rows }, (_, row) => {
    const at = row * tokens * width
    if (pooling === 'cls') return states.slice(at, at + width)
    const sum = new Float64Array(width)
    let count = 0
    for (let token = 0; token < tokens; token++) {
      if (mask[row * tokens + token] === 0n) continue
      count++
      for (let i = 0; i < width; i++) sum[i]! += states[at + token * width + i]!
    }
    return Float32Array.from(sum, value => value / Math.max(1, count))
  })
}

function unit(vector: Float32Array): Float32Array {
  const length = Math.sqrt(vector.reduce((sum, value) => sum + value * value, 0))
  return length > 0 ? vector.map(value => value / length) : vector
}

/** The first `length` UTF-16 units, never half a character. */
function cut(text: string, length: number): string {
  return text.length > length ? text.slice(0, length).replace(/[\uD800-\uDBFF]$/, '') : text
}

function tokenLimit(path: string, asked: number | undefined, limits: readonly unknown[]): number {
  const known = limits.filter((limit): limit is number => typeof limit === 'number' && limit > 0)
  const most = Math.min(...known, Number.MAX_SAFE_INTEGER)
  if (asked === undefined) {
    if (most <= 1e6) return most
    throw failed(path, 'neither config.json nor tokenizer_config.json limits the length; set maxTokens')
  }
  if (!Number.isInteger(asked) || asked < 3 || asked > most) {
    throw failed(path, `maxTokens must be a whole number from 3 to ${most}, got ${asked}`)
  }
  return asked
}

async function hashFiles(path: string, files: readonly string[], dtype: string): Promise<string> {
  const hash = createHash('sha256')
  for (const file of files) {
    const digest = createHash('sha256')
    await pipeline(createReadStream(join(path, file)), digest).catch(error => {
      const expected = 'config.json, tokenizer.json, tokenizer_config.json and onnx/*.onnx'
      const advice =
        file.endsWith('.onnx') || file.endsWith('_data')
          ? `dtype ${dtype} needs it; choose the dtype whose file is there, or export the model to ONNX`
          : `the retriever reads local files only; the folder must hold ${expected}`
      throw failed(path, `cannot read ${file} (${advice}): ${describeError(error)}`, error)
    })
    hash.update(`${file}\0${digest.digest('hex')}\n`)
  }
  return hash.digest('hex')
}

function exists(path: string): Promise<boolean> {
  return access(path).then(
    () => true,
    () => false,
  )
}

function failed(path: string, problem: string, cause?: unknown): GraspError {
  return new GraspError('RETRIEVER_FAILED', `embedding model ${path}: ${problem}`, { cause })
}
