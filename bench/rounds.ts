/** Contenders measured side by side: in turn, in every round another one first, so that a slow moment hits all. */

export interface Sample {
  /** Wall time. */
  readonly seconds: number
  /** Processor time of this process, all threads. */
  readonly processorSeconds: number
}

/** Starts now; the function that it gives tells what went by. */
export function startClock(): () => Sample {
  const start = performance.now()
  const usage = process.cpuUsage()
  return () => {
    const { user, system } = process.cpuUsage(usage)
    return { seconds: (performance.now() - start) / 1000, processorSeconds: (user + system) / 1e6 }
  }
}

export interface Rounds {
  readonly most: number
  /** No further round begins after so many seconds, once there are `least`. */
  readonly seconds: number
  readonly least: number
}

/** The samples of each contender, one a round; a round before them warms up and is not counted. */
export async function alternate<N extends string>(
  contenders: Readonly<Record<N, () => Promise<Sample>>>,
  { most, seconds, least }: Rounds,
  told: (round: number, name: N, sample: Sample) => void = () => {},
): Promise<Record<N, Sample[]>> {
  const names = Object.keys(contenders) as N[]
  const samples = Object.fromEntries(names.map(name => [name, [] as Sample[]])) as Record<N, Sample[]>
  const start = performance.now()
  for (let round = 0; round <= most; round++) {
    if (round > least && performance.now() - start > 1000 * seconds) break
    for (let i = 0; i < names.length; i++) {
      const name = names[(round + i) % names.length]!
      const sample = await contenders[name]()
      told(round, name, sample)
      if (round > 0) samples[name].push(sample)
    }
  }
  return samples
}

export function median(values: readonly number[]): number {
  const sorted = [...values].sort((a, b) => a - b)
  const middle = sorted.length >> 1
  return sorted.length % 2 === 1 ? sorted[middle]! : (sorted[middle - 1]! + sorted[middle]!) / 2
}

/** How much faster the first is than the second: the median over the rounds. */
export function speedRatio(ours: readonly Sample[], peer: readonly Sample[], of: keyof Sample): number {
  return median(ours.map((sample, i) => peer[i]![of] / sample[of]))
}
