/** The known word that a mistyped one most likely meant. */

const plain = (word: string) => word.toLowerCase().replaceAll(/[^a-z0-9]/g, '')

/** Edits (insert, delete, replace, swap of neighbours) that turn one word into the other. */
export function distance(a: string, b: string): number {
  const rows = [Array.from({ length: b.length + 1 }, (_, j) => j)]
  for (let i = 1; i <= a.length; i++) {
    const above = rows[i - 1]!
    const row = [i]
    for (let j = 1; j <= b.length; j++) {
      const replaced = above[j - 1]! + (a[i - 1] === b[j - 1] ? 0 : 1)
      const swapped =
        i > 1 && j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1]
          ? rows[i - 2]![j - 2]! + 1
          : Number.POSITIVE_INFINITY
      row.push(Math.min(replaced, above[j]! + 1, row[j - 1]! + 1, swapped))
    }
    rows.push(row)
  }
  return rows[a.length]![b.length]!
}

/** The nearest of `known`, or undefined where none is near: at most a third of the letters may differ. */
export function nearest(word: string, known: readonly string[]): string | undefined {
  let best: string | undefined
  let least = Number.POSITIVE_INFINITY
  for (const candidate of known) {
    const edits = distance(plain(word), plain(candidate))
    if (edits < least) {
      least = edits
      best = candidate
    }
  }
  return least <= Math.max(1, Math.floor(plain(word).length / 3)) ? best : undefined
}
