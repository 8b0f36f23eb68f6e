/** The keys of the section `training`. */
import { z } from 'zod'
import { count, positive, section } from './fields.ts'

const lora = section('Trains a low-rank adapter W + s · B · A (LoRA) instead of all parameters.', {
  rank: count(0).max(1024).default(0).describe('Rows of A and columns of B; 0 trains all parameters.'),
  alpha: positive().default(32).describe('B · A is scaled by alpha / rank.'),
  rankStabilised: z.boolean().default(false).describe('Scale by alpha / √rank instead.'),
  targets: z
    .array(z.string().min(1))
    .min(1)
    .default(['all-linear'])
    .describe('Names of the projections that get one (q_proj, …); `all-linear`: every one of the layers.'),
  dropout: z.literal(0).default(0).describe('Always 0: rollouts and training see the same policy.'),
})

export const training = section('The optimiser: AdamW over all parameters, or over an adapter.', {
  seed: count(0).default(1).describe('Fixes every sampled token.'),
  epochs: count(1).default(1).describe('Passes over the kept questions.'),
  batch: count(1).default(16).describe('Responses of one update.'),
  microbatch: count(1)
    .default(16)
    .describe('Responses whose gradient is accumulated in one call; smaller ones hold less memory.'),
  learningRate: positive().max(1).default(1e-5).describe('Peak learning rate.'),
  schedule: z
    .enum(['constant', 'linear', 'cosine'])
    .default('constant')
    .describe('How the learning rate goes on after the warm-up; `linear` and `cosine` end at 0.'),
  totalUpdates: count(1)
    .optional()
    .describe(
      'Updates at whose end `linear` and `cosine` have fallen to 0; needed for these. Later updates change nothing.',
    ),
  warmup: z
    .number()
    .min(0)
    .default(0)
    .describe(
      'Updates over which the learning rate rises to its peak; below 1 a part of training.totalUpdates.',
    ),
  betas: z
    .tuple([z.number().min(0).lt(1), z.number().min(0).lt(1)])
    .default([0.9, 0.999])
    .describe('Decay of the moment estimates.'),
  epsilon: positive().default(1e-8).describe('Keeps the denominator from 0.'),
  weightDecay: z.number().min(0).default(0).describe('Decoupled weight decay; norms and biases are exempt.'),
  clip: z.number().min(0).default(1).describe('Greatest global L2 norm of a gradient; 0 is off.'),
  lora,
  optimiserState: z
    .enum(['f32', 'bf16'])
    .default('f32')
    .describe("How AdamW's moments are held; `bf16` takes half the memory and rounds them at random."),
  checkpointEvery: count(1).default(25).describe('Updates between checkpoints.'),
}).superRefine(({ schedule, totalUpdates, warmup }, context) => {
  const needsTotal =
    schedule !== 'constant'
      ? `training.schedule is ${schedule}`
      : warmup > 0 && warmup < 1
        ? `training.warmup is ${warmup}, a part of it`
        : undefined
  if (needsTotal !== undefined && totalUpdates === undefined) {
    context.addIssue({ code: 'custom', path: ['totalUpdates'], message: `is missing, but ${needsTotal}` })
  }
  if (totalUpdates !== undefined && warmup > totalUpdates) {
    const message = `is ${warmup}, more than training.totalUpdates, which is ${totalUpdates}: the rate would never get to its peak`
    context.addIssue({ code: 'custom', path: ['warmup'], message, params: { complete: true } })
  }
  if (warmup >= 1 && !Number.isInteger(warmup)) {
    const message = `is ${warmup}, neither a whole number of updates nor a part of them below 1`
    context.addIssue({ code: 'custom', path: ['warmup'], message })
  }
})
