/** A judged held-out answer, as far as averages need it. */
export interface Judged {
  readonly category: string
  readonly score: number | null
}

export interface Averages {
  /** Mean over the categories of each category's mean; null when nothing was scored. */
  readonly macro: number | null
  readonly categories: Readonly<Record<string, number>>
  readonly scored: number
  /** Answers without a score: neither zeros nor passes, so they are left out and counted. */
  readonly unscored: number
}

/** LaMP-QA's measure: the score of each category and the macro average over categories. */
export function macroAverage(answers: Iterable<Judged>): Averages {
  const sums = new Map<string, { sum: number; count: number }>()
  let unscored = 0
  for (const { category, score } of answers) {
    if (score === null) {
      unscored += 1
      continue
    }
    const entry = sums.get(category) ?? { sum: 0, count: 0 }
    sums.set(category, { sum: entry.sum + score, count: entry.count + 1 })
  }
  const sorted = [...sums].sort(([a], [b]) => (a < b ? -1 : 1))
  const means = sorted.map(([category, { sum, count }]) => [category, sum / count] as const)
  const macro = means.length === 0 ? null : means.reduce((total, [, mean]) => total + mean, 0) / means.length
  const scored = sorted.reduce((total, [, { count }]) => total + count, 0)
  return { macro, categories: Object.fromEntries(means), scored, unscored }
}
