/**
 * Why results would depend on the number of threads, and what keeps them from it.
 *
 * onnxruntime gives each thread a part of a matrix product: rows, or columns where the product is wider than
 * tall. With 64 columns or fewer it sums in larger steps (StrideK in MLAS's sgemm.cpp), that is, in another
 * order. Columns are dealt out in blocks of 16, so with t threads this befalls products of fewer than 80·t
 * columns. Products at least as tall as wide are safe.
 */

/** Up to this number of threads results are the same to the bit. */
const THREADS = 2

/** Wider products give no thread so few columns. */
const SPLIT_WIDTH = 80 * THREADS - 16

/** Whether a product's height and width leave its order of summation to the number of threads. */
export function dependsOnThreads(rows: number, columns: number): boolean {
  return columns > rows && columns <= SPLIT_WIDTH
}

/** How many rows it takes for products of each of these widths not to depend on the number of threads. */
export function leastRows(widths: Iterable<number>): number {
  let rows = 1
  for (const width of widths) if (dependsOnThreads(rows, width)) rows = width
  return rows
}
