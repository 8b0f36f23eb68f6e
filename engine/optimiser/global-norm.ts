/** L2 norm over several arrays, summed in f64 in the order given. */
export function globalNorm(arrays: Iterable<Float32Array>): number {
  let sum = 0
  for (const array of arrays) {
    let part = 0
    for (let i = 0; i < array.length; i++) part += array[i]! * array[i]!
    sum += part
  }
  return Math.sqrt(sum)
}
