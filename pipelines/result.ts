/** The result document of a run: what `grasp run --json` prints. */

export interface RunResult {
  readonly run: string
  /** Training questions that were validated, and those that were kept at τ. */
  readonly instances: { readonly seen: number; readonly kept: number }
  /** Macro averages on the held-out split: before training, the teacher, after training. */
  readonly scores: { readonly student: number; readonly teacher: number; readonly grasp: number } | null
  readonly categories: Readonly<
    Record<string, { readonly student: number; readonly teacher: number; readonly grasp: number }>
  > | null
  /** Mean response-level forward KL on held-out responses sampled before training, nats a token. */
  readonly kl: { readonly before: number; readonly after: number } | null
  /** Records that could not be processed and were not replayed. */
  readonly deadLetters: number
  readonly updates: number
  readonly policy: { readonly version: number; readonly path: string; readonly weightsHash: string }
  readonly seconds: number
}

/** The result of training: the policy with the best validation score, or the newest where none was measured. */
export interface FinalPolicy {
  readonly version: number
  readonly path: string
  readonly weightsHash: string
  readonly updates: number
}
