/** L2 norm over several arrays, summed in f64. */
import { assemble, TYPE, wasmKernel } from '../runtime/wasm-module.ts'

/** Elements that go through the kernel's memory at a time: one page. */
const PIECE = 16_384

const LOCALS = ['bytes', 'x', 'low', 'high', 'at']
const body = assemble(
  `loop
    at wide.load@0 :=x x wide.multiply low wide.add =low
    at wide.load@8 :=x x wide.multiply high wide.add =high
    at 16 i32.add :=at bytes i32.less repeat
  end
  low high wide.add :=low wide.first low wide.second f64.add`,
  LOCALS,
  { 0: 0, 8: 8 },
)

const kernel = wasmKernel<(bytes: number) => number>(1, {
  name: 'squares',
  parameters: [TYPE.i32],
  results: [TYPE.f64],
  vectors: 3,
  integers: 1,
  body,
})

export function globalNorm(arrays: Iterable<Float32Array>): number {
  const { run, memory } = kernel
  let sum = 0
  for (const array of arrays) {
    for (let from = 0; from < array.length; from += PIECE) {
      const piece = array.subarray(from, from + PIECE)
      memory.set(piece)
      // Four elements at a time: what an earlier piece left behind the last ones must not count.
      memory.fill(0, piece.length, piece.length + 3)
      sum += run(4 * piece.length)
    }
  }
  return Math.sqrt(sum)
}
