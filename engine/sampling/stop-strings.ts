/**
 * Watches one response for strings that end it. Text comes from decoding ids, never the other way round, so a string
 * is found wherever it lies across tokens, also where a token holds half a character or more than the string.
 */

/** Told each token as it is sampled; true when the text of the response now contains one of the strings. */
export type StopWatch = (token: number) => boolean

/** Characters that a window of tokens may lose or change at its ends: parts of a character, a leading space. */
const MARGIN = 8

/**
 * @param stop not empty; none of the strings is.
 * @param decode ids to text, as the tokenizer of the model does it.
 */
export function stopWatch(stop: readonly string[], decode: (ids: Int32Array) => string): StopWatch {
  const needed = Math.max(...stop.map(text => text.length)) + MARGIN
  // Decoding the whole response at each token would take time that grows with its square.
  let window: number[] = []
  return token => {
    window.push(token)
    const text = decode(Int32Array.from(window))
    if (stop.some(each => text.includes(each))) return true
    if (text.length < 2 * needed) return false
    // Nothing before the window's last characters can be part of a string that is yet to come.
    const half = window.slice(window.length >> 1)
    if (decode(Int32Array.from(half)).length >= needed) window = half
    return false
  }
}
