// Generated from the .avsc files by `npm run schemas:types`; do not edit.

/** What this user wants an answer to cover. */
export interface Aspect {
  aspect: string
  reason: string
  evidence: string
}

/** The trainer's batch that a rollout belongs to. */
export interface Batch {
  /** From 0; sampled with policy version max(0, number - lag). */
  number: number
  /** Place within the batch; gradients are accumulated in this order. */
  index: number
  /** How many rollouts the batch holds. */
  size: number
}

/** A question with the posts that were retrieved for it. */
export interface Context {
  id: string
  user: string
  split: string
  category: string
  question: string
  narrative: string
  aspects: readonly Aspect[]
  /** Best first. */
  passages: readonly Passage[]
  profileSize: number
  /** Hash of the retriever: kind, settings, model. */
  retriever: string
}

/** A record that a stage could not process. */
export interface DeadLetter {
  stage: string
  /** Source topic; empty when the item came from a file. */
  topic: string
  partition: number
  offset: number
  key: string
  /** One of the project's error codes. */
  code: string
  message: string
  attempts: number
  /** The record as it was, with its schema fingerprint; or the file's item as JSON. */
  payload: Uint8Array
}

/** A held-out answer and its verdicts. */
export interface Evaluation {
  instance: string
  split: string
  category: string
  /** student (before training), teacher, grasp (a trained policy), or probe (a response kept to measure KL on). */
  role: string
  policyVersion: number
  prompt: readonly number[]
  responseTokens: readonly number[]
  response: string
  finish: string
  verdicts: readonly Verdict[]
  score: number | null
  /** probe only: mean forward KL a token to the teacher, nats. */
  kl: number | null
  sampling: Sampling
  judge: string
}

/** A validated question that is trained on, with its place in the sequence of batches. A batch is keyed by its number, so that it stays together. */
export interface Instance {
  context: Context
  /** s_T */
  score: number
  tau: number
  epoch: number
  batch: Batch
}

/** A retrieved post; higher scores rank first. */
export interface Passage {
  id: string
  text: string
  score: number
}

/** A policy version and where its checkpoint is. */
export interface Policy {
  version: number
  path: string
  weightsHash: string
  tokenizer: string
  /** Validation score, where it was measured. */
  score: number | null
  best: boolean
}

/** One earlier post of a user. */
export interface Post {
  id: string
  text: string
}

/** A question of a user, with the user's posts and, for training, the rubric. */
export interface Question {
  id: string
  user: string
  /** train, validation or test. */
  split: string
  category: string
  question: string
  narrative: string
  profile: readonly Post[]
  aspects: readonly Aspect[]
}

/** A response that the student sampled. Token ids are never decoded and encoded again. */
export interface Rollout {
  instance: string
  batch: Batch
  policyVersion: number
  /** Why nothing could be sampled; the prompts and the response are then empty. Keeps the batch countable. */
  failed: string | null
  studentPrompt: readonly number[]
  teacherPrompt: readonly number[]
  /** With the end-of-sequence token when the student wrote it, or the tokens of the stop string. */
  response: readonly number[]
  /** stop or length. */
  finish: string
  sampling: Sampling
  /** Hash of the prompt file. */
  prompt: string
  /** Hash of the tokenizer. */
  tokenizer: string
}

export interface Sampling {
  /** 0 is greedy. */
  temperature: number
  /** 0 is off. */
  topK: number
  /** 1 is off. */
  topP: number
  /** 0 is off. */
  minP: number
  maxNewTokens: number
  /** Strings that end a response. */
  stop: readonly string[]
  seed: number
}

/** A run of response tokens of one rollout with the paired next-token distributions of student and teacher. */
export interface Slice {
  instance: string
  batch: Batch
  policyVersion: number
  /** Why the rollout could not be scored; its other fields are then empty. Keeps the batch countable. */
  failed: string | null
  /** Which slice of its rollout, from 0. */
  part: number
  parts: number
  /** First response token of this slice. */
  start: number
  /** How many response tokens this slice holds. */
  count: number
  /** The student's prompt. */
  prompt: readonly number[]
  /** The whole response. */
  response: readonly number[]
  /** factored, dense or topk. */
  encoding: string
  /** f32, f16 or bf16, little-endian. */
  dtype: string
  /** Values a token and side: hidden size, vocabulary size, or k. */
  width: number
  /** [count, width] */
  student: Uint8Array
  /** [count, width] */
  teacher: Uint8Array
  /** topk only: [count, k] u32 token ids. */
  studentIds: Uint8Array
  /** topk only: [count, k] u32 token ids. */
  teacherIds: Uint8Array
  /** factored only: hash of the output head that turns hidden states into logits. */
  studentHead: string
  teacherHead: string
  tokenizer: string
  vocabulary: number
  /** Convention; 'row t predicts response token start + t'. */
  shift: string
  /** log-sum-exp of the student's logits, a token. */
  studentLse: readonly number[]
  teacherLse: readonly number[]
  /** log-probability of the observed token, nats. */
  studentLogp: readonly number[]
  teacherLogp: readonly number[]
  /** Forward KL(teacher || student), nats, a token. */
  kl: readonly number[]
  /** topk only: mean absolute error of the KL that truncation caused, nats. */
  truncation: number | null
}

export interface Span {
  partition: number
  from: number
  /** Exclusive. */
  to: number
}

/** One optimiser step. */
export interface Update {
  /** The policy version that this step made; version 0 is the backbone. */
  version: number
  batch: number
  /** The policy version that sampled the batch. */
  rolloutVersion: number
  /** In the order of accumulation. */
  instances: readonly string[]
  /** Offsets of `slices`. */
  consumed: readonly Span[]
  responses: number
  /** Response tokens that carried loss. */
  tokens: number
  /** Mean over responses of the mean over tokens. */
  loss: number
  /** Forward KL in nats, averaged as the loss is. */
  kl: number
  /** Global L2 norm before clipping. */
  gradientNorm: number
  learningRate: number
  /** sha256 over the weights after the step. */
  weightsHash: string
  milliseconds: number
}

/** RTV: the teacher's answer and the judge's verdicts on it. */
export interface Validation {
  context: Context
  response: string
  responseTokens: readonly number[]
  /** stop or length. */
  finish: string
  verdicts: readonly Verdict[]
  /** s_T = sum of verdicts / 2m; null when any aspect is unscored. */
  score: number | null
  /** score >= tau. */
  accepted: boolean
  tau: number
  sampling: Sampling
  /** Hash of the judge: kind, settings, key. */
  judge: string
  /** Hash of the prompt file. */
  prompt: string
  /** Hash of the teacher's weights. */
  teacher: string
}

/** The judge's word on one aspect: a score of 0, 1 or 2, or null and why (never silently 0). */
export interface Verdict {
  aspect: string
  score: number | null
  /** Why there is no score. */
  unscored: string | null
}

/** The record of each topic. */
export interface Records {
  contexts: Context
  deadletters: DeadLetter
  evaluations: Evaluation
  instances: Instance
  policies: Policy
  questions: Question
  rollouts: Rollout
  slices: Slice
  updates: Update
  validations: Validation
}

export type Topic = keyof Records

export const TOPICS: readonly Topic[] = [
  'contexts',
  'deadletters',
  'evaluations',
  'instances',
  'policies',
  'questions',
  'rollouts',
  'slices',
  'updates',
  'validations',
]
