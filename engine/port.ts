/**
 * The engine port: language models as the pipeline sees them. It speaks of token ids, prompts, policy
 * versions, hidden states, losses and checkpoints, never of ONNX, and every argument and result survives a
 * structured clone, so that an engine can live in another process.
 *
 * One engine holds a frozen teacher (the initial weights) and the student: policy version 0 is the initial
 * weights, version n the weights after n updates. Shape suffixes: T tokens, D hidden size, V vocabulary.
 */

export interface ModelInfo {
  /** `model_type` of config.json. */
  readonly architecture: string
  readonly parameters: number
  readonly layers: number
  readonly hiddenSize: number
  readonly vocabularySize: number
  /** Most tokens (prompt and response) that the model takes. */
  readonly contextLength: number
  /** Any of these ends a response. */
  readonly stopTokens: readonly number[]
  /** sha256 (hex) over the teacher's weights, in the order of their names. */
  readonly weightsHash: string
  /** sha256 (hex) of tokenizer.json, and of the chat template. */
  readonly tokenizerHash: string
  readonly templateHash: string
  /** Hash of the teacher's output head; slices in `factored` encoding name it. */
  readonly teacherHead: string
  readonly device: string
  readonly threads: number
}

/** `teacher`, or the number of a policy version that the engine still holds. */
export type PolicyReference = 'teacher' | number

export interface SamplingOptions {
  /** 0 is greedy. 1 with the three that follow off samples the policy itself. */
  readonly temperature: number
  /** The k likeliest tokens only; 0 is off. */
  readonly topK: number
  /** Of these the likeliest that reach topP together; 1 is off. */
  readonly topP: number
  /** Of these the ones that are at least minP times as likely as the likeliest; 0 is off. */
  readonly minP: number
  readonly maxNewTokens: number
  /**
   * A response ends with the token that makes its text, as `decode` gives it, contain one of these. The tokens of
   * the string stay in the response: ids are kept as they were sampled.
   */
  readonly stop: readonly string[]
  readonly seed: number
}

export interface Prompt {
  /** Names the random stream: draws depend on (seed, key, policy version, token index) alone. */
  readonly key: string
  readonly ids: Int32Array
  /**
   * Responses to sample, 1 by default, each from a random stream of its own; the first is what is sampled where only
   * one is. The prompt is read once for all.
   */
  readonly samples?: number
}

export interface Generation {
  /** With the stop token or the tokens of the stop string that ended it. Never empty. */
  readonly ids: Int32Array
  /** `stop`: by a stop token or a stop string; `length`: cut at maxNewTokens. */
  readonly finish: 'stop' | 'length'
  /** log-probability under the policy at temperature 1, nats, one a token. */
  readonly logp: Float32Array
}

/** A chat, in the roles that the model's template knows. */
export interface Message {
  readonly role: 'system' | 'user' | 'assistant'
  readonly content: string
}

export interface ScoreItem {
  readonly studentPrompt: Int32Array
  readonly teacherPrompt: Int32Array
  readonly response: Int32Array
}

/** How the distributions over the vocabulary travel. `topk` is approximate. */
export type Encoding = 'factored' | 'dense' | 'topk'
export type Dtype = 'f32' | 'f16' | 'bf16'

export interface ScoreOptions {
  readonly policyVersion: number
  readonly encoding: Encoding
  readonly dtype: Dtype
  /** topk only. */
  readonly k?: number
  /** Leave out the distributions; only the per-token numbers are wanted. */
  readonly numbersOnly?: boolean
}

/** One side's distributions: [T, width] values, little-endian in the slice's dtype. */
export interface Distributions {
  readonly encoding: Encoding
  readonly dtype: Dtype
  readonly width: number
  readonly data: Uint8Array
  /** topk only: [T, k] u32 ids. */
  readonly ids?: Uint8Array
  /** factored only: hash of the head that makes logits of hidden states. */
  readonly head?: string
  /** log-sum-exp of the logits, nats, one a token. */
  readonly lse: Float32Array
  /** log-probability of the observed token, nats. */
  readonly logp: Float32Array
}

export interface Scored {
  readonly student: Distributions
  readonly teacher: Distributions
  /** Forward KL(teacher || student), nats, one a token, always from the full vocabulary. */
  readonly kl: Float32Array
  /** topk only: mean absolute error of the KL from the truncated distributions, nats a token. */
  readonly truncation?: number
}

/**
 * One response to learn from. Row t of `teacher` is the teacher's distribution of `response[t]`.
 * `cross-entropy` learns the response itself (pre-training, supervised baselines).
 */
export type TrainItem =
  | {
      readonly loss: 'forward-kl'
      readonly prompt: Int32Array
      readonly response: Int32Array
      readonly teacher: Distributions
    }
  | { readonly loss: 'cross-entropy'; readonly prompt: Int32Array; readonly response: Int32Array }

export interface Accumulated {
  /** Mean loss over the tokens of each response, nats, in the order of the items. */
  readonly losses: Float64Array
  readonly tokens: number
}

export interface UpdateOptions {
  /** Responses accumulated since the last update: the gradient is their mean. 0: the next version has the same weights. */
  readonly responses: number
  readonly learningRate: number
  readonly betas: readonly [number, number]
  readonly epsilon: number
  /** Decoupled; norms and biases are exempt. */
  readonly weightDecay: number
  /** Greatest global L2 norm of the gradient; Infinity is off. */
  readonly clip: number
}

export interface Updated {
  /** The policy version that the update made. */
  readonly version: number
  /** Before clipping. */
  readonly gradientNorm: number
  readonly weightsHash: string
}

/**
 * Beside their own errors, all methods that need the model fail with ENGINE_FAILED once the engine is closed or where
 * they name a policy version that it does not hold, and with ENGINE_DIED where it runs in a process that has ended.
 */
export interface Engine {
  info(): Promise<ModelInfo>

  /** Text to ids through the model's chat template, ready for the assistant's turn. */
  encodeChat(messages: readonly Message[]): Promise<Int32Array>
  /** Ids to text, special tokens left out. */
  decode(ids: Int32Array): Promise<string>

  /**
   * The responses in the order of the prompts; several of one prompt follow each other. Errors: PROMPT_TOO_LONG for one
   * that does not fit into the context with maxNewTokens, RECORD_INVALID for ids that the model has not, CONFIG_INVALID
   * for sampling options that cannot be; before anything is sampled.
   */
  generate(
    policy: PolicyReference,
    prompts: readonly Prompt[],
    options: SamplingOptions,
  ): Promise<Generation[]>

  /**
   * The paired distributions of student (a policy version) and teacher over each response, in the order of the items.
   * Errors: PROMPT_TOO_LONG, RECORD_INVALID for an item; CONFIG_INVALID for a `k` that the vocabulary has not.
   */
  score(items: readonly ScoreItem[], options: ScoreOptions): Promise<Scored[]>

  /**
   * Adds the gradient of the items' losses (each the mean over its response's tokens, summed over items) to
   * the running sum. How the items are split into calls does not change the sum beyond f32 rounding. Errors:
   * SLICE_MISMATCH, RECORD_INVALID, PROMPT_TOO_LONG for an item, and then nothing is added; after ENGINE_FAILED the sum
   * is to be discarded.
   */
  accumulate(items: readonly TrainItem[]): Promise<Accumulated>
  /** Drops what was accumulated. */
  discard(): Promise<void>
  /**
   * Clips, steps AdamW, makes the next policy version. Versions older than `keepPolicies` back are dropped. Errors:
   * ENGINE_FAILED where nothing was accumulated, or where the gradient is not finite; the weights are what they were.
   */
  update(options: UpdateOptions): Promise<Updated>

  /** The newest policy version. */
  policyVersion(): Promise<number>
  /** sha256 over the weights, in the order of their names. */
  weightsHash(policy: PolicyReference): Promise<string>

  /**
   * Writes a Hugging Face directory with optimiser state, kept policies and `state` (the caller's, JSON)
   * beside the weights; durable and complete, or absent: it is written aside and renamed.
   */
  saveCheckpoint(path: string, state: unknown): Promise<void>
  /**
   * Restores student, optimiser and policy version; returns the caller's state. Errors: CHECKPOINT_INVALID for one that
   * is damaged, or belongs to another model or another way of training.
   */
  loadCheckpoint(path: string): Promise<unknown>
  /**
   * Takes a policy version that another engine made, from its Hugging Face directory. Throws CHECKPOINT_INVALID when
   * its weights are not those of `weightsHash`.
   */
  loadPolicy(version: number, path: string, weightsHash: string): Promise<void>
  /** Writes only the policy, as a Hugging Face directory. Errors: ENGINE_FAILED where it cannot be written. */
  exportPolicy(
    policy: PolicyReference,
    path: string,
    dtype: 'f32' | 'bf16',
    options?: ExportOptions,
  ): Promise<void>

  /**
   * For a run that is to stop and abandons what is sampled and scored: `generate` and `score` end with INTERRUPTED from
   * now on, also those under way. Everything else goes on, once the engine has noticed: within about a decoding step,
   * the reading of prompts, or the hidden states of one side.
   */
  interrupt(): Promise<void>

  close(): Promise<void>
}

/** A low-rank adapter that is trained instead of the weights: W = W₀ + scale · B · A. */
export interface LoraOptions {
  /** r: rows of A and columns of B. */
  readonly rank: number
  /** The scale is alpha / rank. */
  readonly alpha: number
  /** The scale is alpha / √rank. */
  readonly rankStabilised: boolean
  /** Names of projections (`q_proj`), or `all-linear`. */
  readonly targets: readonly string[]
  /** Fixes A at the start. */
  readonly seed: number
}

/** How the optimiser's moments are held; bf16 halves their memory, and rounds them at random. */
export type OptimiserDtype = 'f32' | 'bf16'

export interface ExportOptions {
  /** A model's directory that is there already is replaced; without it any that is not empty is refused. */
  readonly replace?: boolean
  /**
   * Whether the files are on the disk when the call returns; true by default. Either way the folder appears whole, but
   * one that is not on the disk may be damaged after a power cut.
   */
  readonly durable?: boolean
}

/** Where the model runs: the CPU, a GPU through WebGPU (Dawn over Vulkan, Metal or Direct3D), or one through CUDA. */
export type DeviceKind = 'cpu' | 'webgpu' | 'cuda'

export interface EngineOptions {
  /** A Hugging Face directory (config.json, *.safetensors, tokenizer.json) or a GGUF file. */
  readonly path: string
  readonly device: DeviceKind
  readonly threads: number
  /** Policy versions kept beside the newest, for rollouts that lag behind the trainer. */
  readonly keepPolicies: number
  /** Most tokens (padding included) in one training or scoring pass: bounds memory. */
  readonly tokensPerPass: number
  /** Most sequences decoded together. */
  readonly sequencesPerPass: number
  /** Trains an adapter; all parameters are trained where it is left out. */
  readonly lora?: LoraOptions
  /** f32 by default, and only that on a device. */
  readonly optimiserState?: OptimiserDtype
  /**
   * Most bytes of one tensor that a device's kernels can be given; embedding and output head are cut into parts that
   * fit. 128 MiB by default, which every WebGPU device takes.
   */
  readonly bindingBytes?: number
}
