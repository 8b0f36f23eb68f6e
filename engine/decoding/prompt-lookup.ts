/**
 * Drafts from the text itself: what followed where the last few tokens stood before. Answers quote their contexts, and
 * repeat themselves. Saxena: Prompt Lookup Decoding (2023).
 */

export interface Lookup {
  /** May follow the sequence. */
  readonly tokens: readonly number[]
  /** How many tokens before stood there too. */
  readonly matched: number
}

/** Fewer tokens in common say too little. */
const SHORTEST_MATCH = 2
/** More tell no more. */
const LONGEST_MATCH = 8

/**
 * What may follow the sequence (prompt and response so far), `most` tokens; none where its last tokens never stood
 * before.
 */
export function lookUp(sequence: readonly number[], most: number): Lookup {
  const last = sequence.length - 1
  let matched = SHORTEST_MATCH - 1
  let found = -1
  // From the latest on: of equally long matches the nearest tells most.
  for (let end = last - 1; end >= matched && matched < LONGEST_MATCH; end--) {
    let length = 0
    while (length < LONGEST_MATCH && length <= end && sequence[end - length] === sequence[last - length])
      length++
    if (length <= matched) continue
    matched = length
    found = end
  }
  if (found < 0) return { tokens: [], matched: 0 }
  // Where the match is near the end, the draft goes on with itself.
  const period = last - found
  const tokens: number[] = []
  for (let i = 0; i < most; i++) tokens.push(i < period ? sequence[found + 1 + i]! : tokens[i - period]!)
  return { tokens, matched }
}
