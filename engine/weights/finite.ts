/** Whether weights are numbers: what is not spreads through every token, and shows only where one is to be drawn. */
import type { Weights } from './weights.ts'

/** The first tensor, by name, that holds an infinity or what is no number, and how many of its elements do. */
export function firstNonFinite(
  weights: Weights,
): { readonly name: string; readonly count: number } | undefined {
  for (const name of [...weights.keys()].sort()) {
    const data = weights.get(name)!.data as Float32Array
    // 0 times such an element is no number either, and so is every sum with it.
    let sum = 0
    for (let i = 0; i < data.length; i++) sum += data[i]! * 0
    if (sum === 0) continue
    return { name, count: data.reduce((count, value) => count + (Number.isFinite(value) ? 0 : 1), 0) }
  }
  return undefined
}
