/**
 * Columns of a product with a weight, in a step. The tokens of a step are multiplied in parts: from `fewest` to `most`
 * columns add alike, to the bit.
 */
export interface PartSize {
  readonly fewest: number
  readonly most: number
}

const SMALL: PartSize = { fewest: 2, most: 16 }
/** A part of these takes longer than a small one, and less time than two of them. */
const LARGE: PartSize = { fewest: 17, most: 32 }

export function partSizeFor(sequences: number): PartSize {
  return sequences <= SMALL.most ? SMALL : LARGE
}

/** Parts of a step of so many tokens. Three take as long as four: threads take whole parts. */
export function partsOf(tokens: number, { most }: PartSize): number {
  return 2 ** Math.ceil(Math.log2(Math.max(1, tokens / most)))
}
