/** Rows as aligned columns of text; amounts (what looks like one: `12`, `≤ 12`, `12 %`, `12 min`) are set flush right. */
export function table(rows: readonly (readonly string[])[]): string {
  const widths = rows.reduce<number[]>(
    (most, row) => row.map((cell, i) => Math.max(most[i] ?? 0, cell.length)),
    [],
  )
  const right = (cell: string) => /^(≤ )?[\d.,−+-]+( (%|s|min|h|d))?$/.test(cell) || cell === '–'
  const body = widths.map((_, i) => rows.slice(1).every(row => right(row[i] ?? '')))
  return rows
    .map(row =>
      row
        .map((cell, i) => (body[i] ? cell.padStart(widths[i]!) : cell.padEnd(widths[i]!)))
        .join('  ')
        .trimEnd(),
    )
    .map(line => `${line}\n`)
    .join('')
}
