export interface ScheduleOptions {
  readonly schedule: 'constant' | 'linear' | 'cosine'
  readonly learningRate: number
  /** Updates over which the rate rises linearly from 0 to `learningRate`. */
  readonly warmup: number
  /** Updates in all: linear and cosine fall to 0 there. Constant ignores it. */
  readonly totalUpdates: number | null
}

/** The learning rate of the update that makes policy version `step + 1`; step counts from 0. */
export function learningRate(step: number, options: ScheduleOptions): number {
  const { schedule, learningRate: peak, warmup, totalUpdates } = options
  if (step < warmup) return (peak * (step + 1)) / warmup
  if (schedule === 'constant' || totalUpdates === null) return peak
  const progress = Math.min(1, (step - warmup) / Math.max(1, totalUpdates - warmup))
  return schedule === 'linear' ? peak * (1 - progress) : (peak * (1 + Math.cos(Math.PI * progress))) / 2
}
