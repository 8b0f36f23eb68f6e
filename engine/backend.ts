/**
 * What the engine does its arithmetic with: the CPU (cpu-backend.ts) or a device with memory of its own
 * (accelerator/device-backend.ts). Weights are held where the backend works on them; hashes, checkpoints and exports
 * fetch them. A backend is given only weights that it made.
 */
import type { Tensor } from 'onnxruntime-node'
import type { Request } from './decoding/row.ts'
import type { TokenNumbers } from './learner/head.ts'
import type { Sequence } from './learner/work.ts'
import type { OptimiserState } from './optimiser/adamw.ts'
import type {
  Accumulated,
  EngineOptions,
  Generation,
  SamplingOptions,
  TrainItem,
  UpdateOptions,
} from './port.ts'
import type { Weights } from './weights/weights.ts'

export interface BackendOptions extends EngineOptions {
  readonly stopTokens: readonly number[]
}

/** A parameter where the backend holds it. */
export interface HeldTensor {
  readonly dims: readonly number[]
  readonly size: number
}

export type Held = ReadonlyMap<string, HeldTensor>

/** Hidden states [N, D] after the final norm, with the matrix [V, D] that makes logits of them. */
export interface HeldHeadInput {
  readonly hidden: Float32Array
  readonly head: HeldTensor
}

export interface Scorer {
  /**
   * Hidden states after the final norm: [count, D] of each sequence, in order. Row t, through the head, is the
   * distribution of the token at t + 1.
   * @throws GraspError PROMPT_TOO_LONG, RECORD_INVALID
   */
  hiddenStates(weights: Held, sequences: readonly Sequence[]): Promise<Float32Array[]>
  /** Log-sum-exps, log-probabilities and KL of N tokens. */
  numbers(student: HeldHeadInput, teacher: HeldHeadInput, observed: Int32Array): Promise<TokenNumbers>
  /** Logits [N, V]. */
  logits(input: HeldHeadInput): Promise<Float32Array>
}

/** What training goes on from beside the weights. */
export interface TrainingState {
  /** Undefined before the first step. */
  readonly optimiser: OptimiserState | undefined
  /** The factors of LoRA; undefined before the first gradient, and where the weights themselves are trained. */
  readonly adapter: Weights | undefined
}

export interface UpdateContext<H = Held> {
  /** Version 0, which an adapter was begun on. */
  readonly teacher: H
  /** The weights that are updated stay in use; else the update may write over them or free them, but for the teacher's. */
  readonly keep: boolean
}

export interface HeldUpdate {
  readonly weights: Held
  /** sha256 over the weights. */
  readonly hash: string
  /** Before clipping. */
  readonly gradientNorm: number
}

export interface Backend extends Scorer {
  /** Takes weights; they are the backend's then. */
  hold(weights: Weights): Promise<Held>
  /** A parameter on the CPU, only to be read. */
  fetch(tensor: HeldTensor): Promise<Tensor>
  /** Frees the parameters that none of `others` has. */
  release(weights: Held, others: readonly Held[]): void

  /**
   * One generation a request, in order.
   * @param check called before each pass through the model: what it throws ends the call
   */
  generate(
    weights: Held,
    requests: readonly Request[],
    sampling: SamplingOptions,
    check: () => void,
  ): Promise<Generation[]>
  /**
   * Adds the gradient of Σ over items of the mean loss over the item's tokens to the running sum.
   * @param teacherHead [V, D], which turns `factored` teachers into logits
   */
  accumulate(weights: Held, teacherHead: HeldTensor, items: readonly TrainItem[]): Promise<Accumulated>
  /** Drops what was accumulated. */
  discard(): void
  /** Clips, steps AdamW and drops what was accumulated. */
  update(weights: Held, context: UpdateContext, options: UpdateOptions): Promise<HeldUpdate>

  training(): Promise<TrainingState>
  restore(training: TrainingState): Promise<void>
  /** Frees what it holds beside weights. */
  close(): Promise<void>
}
