export interface ScheduleOptions {
  readonly schedule: 'constant' | 'linear' | 'cosine'
  readonly learningRate: number
  /** Updates over which the rate rises linearly to `learningRate`; below 1 a part of `totalUpdates`, rounded up. */
  readonly warmup: number
  /** Updates in all: linear and cosine fall to 0 there and stay. Constant needs it for a part to warm up over. */
  readonly totalUpdates: number | null
}

/**
 * The learning rate of the update that makes policy version `step + 1`; step counts from 0.
 *
 * After the warm-up it is that of transformers' get_{constant,linear,cosine}_schedule_with_warmup at the same step. In
 * the warm-up it is theirs at the next step: theirs begins at 0, which would spend a batch on no change.
 */
export function learningRate(step: number, options: ScheduleOptions): number {
  const { schedule, learningRate: peak, totalUpdates } = options
  const warmup = warmupUpdates(options)
  if (step < warmup) return (peak * (step + 1)) / warmup
  if (schedule === 'constant' || totalUpdates === null) return peak
  const progress = Math.min(1, (step - warmup) / Math.max(1, totalUpdates - warmup))
  return schedule === 'linear' ? peak * (1 - progress) : (peak * (1 + Math.cos(Math.PI * progress))) / 2
}

function warmupUpdates({ warmup, totalUpdates }: ScheduleOptions): number {
  return warmup < 1 ? Math.ceil(warmup * (totalUpdates ?? 0)) : warmup
}
