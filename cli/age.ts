const UNITS = [
  ['d', 86_400_000],
  ['h', 3_600_000],
  ['min', 60_000],
  ['s', 1000],
] as const

/** A span of time in its largest unit: 95,000 ms → `1 min`; below a second `0 s`. */
export function age(milliseconds: number): string {
  for (const [unit, size] of UNITS) {
    if (milliseconds >= size) return `${Math.floor(milliseconds / size)} ${unit}`
  }
  return '0 s'
}
