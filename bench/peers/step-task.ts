/** What both sides of bench/grasp-step.ts are given on standard input. */
export interface StepTask {
  /** A Hugging Face directory. */
  readonly model: string
  readonly threads: number
  readonly steps: number
  readonly studentPrompt: readonly number[]
  readonly teacherPrompt: readonly number[]
  readonly response: readonly number[]
  /** Prefix of onnxruntime's profiles; ours only. */
  readonly profile?: string
}

/** What they write of each step: times in milliseconds, peak resident memory in MiB. */
export interface StepNumbers {
  readonly loss: number
  readonly norm: number
  readonly teacher: number
  readonly gradient: number
  readonly update: number
  readonly peak: number
}
