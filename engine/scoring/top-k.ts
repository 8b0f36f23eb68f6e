/** The k greatest of a row of logits. */

/**
 * Ids by falling logit, ties by rising id. Cost: one pass over the row with a heap of k.
 * @param k at most the row's length.
 */
export function topK(logits: Float32Array, k: number): Uint32Array {
  // A heap of the k best so far, its root the worst of them.
  const heap = new Uint32Array(k)
  const worse = (a: number, b: number) => logits[a]! < logits[b]! || (logits[a]! === logits[b]! && a > b)
  const sink = (start: number, size: number) => {
    const item = heap[start]!
    let parent = start
    for (;;) {
      let child = 2 * parent + 1
      if (child >= size) break
      if (child + 1 < size && worse(heap[child + 1]!, heap[child]!)) child++
      if (!worse(heap[child]!, item)) break
      heap[parent] = heap[child]!
      parent = child
    }
    heap[parent] = item
  }
  for (let id = 0; id < k; id++) heap[id] = id
  for (let parent = (k >> 1) - 1; parent >= 0; parent--) sink(parent, k)
  for (let id = k; id < logits.length; id++) {
    if (!worse(heap[0]!, id)) continue
    heap[0] = id
    sink(0, k)
  }
  return heap.sort((a, b) => logits[b]! - logits[a]! || a - b)
}
