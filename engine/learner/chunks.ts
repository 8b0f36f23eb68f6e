/** How rows of tokens are cut for the output head. */

/** Elements of a chunk's [tokens, V], of which a loss holds a handful at a time. */
export const CHUNK_ELEMENTS = 2 ** 24

/**
 * From and to of each chunk. Even parts: a small rest would cost a pass over the head's matrix like a whole chunk.
 * @param most rows of a chunk
 */
export function* chunksOf(rows: number, most: number): Generator<[number, number]> {
  const size = Math.ceil(rows / Math.ceil(rows / most))
  for (let from = 0; from < rows; from += size) yield [from, Math.min(rows, from + size)]
}
