/**
 * How many products of a batch it takes until no threads share one. onnxruntime gives each of a few products to several
 * threads, each some of its columns, and the number of columns decides in which order it adds. With as many products as
 * threads that ends; on processors with cores of several kinds, where onnxruntime cuts work four times as fine, later.
 * Which those are it does not tell, so it is tried.
 */
import { Tensor } from 'onnxruntime-node'
import { GraphBuilder } from '../onnx/graph-builder.ts'
import { Session } from './session.ts'

/** As fine as onnxruntime cuts work where cores differ. */
const FINEST = 4
/** Rows, inner length and columns of the products: large enough for every thread to get some, and for several sums. */
const [ROWS, INNER, COLUMNS] = [2, 2048, 64]

const known = new Map<number, Promise<number>>()

/** @param threads of the sessions that will multiply */
export function unsharedProducts(threads: number): Promise<number> {
  const found = known.get(threads) ?? measure(threads)
  known.set(threads, found)
  return found
}

async function measure(threads: number): Promise<number> {
  if (threads === 1) return 1
  return (await areUnshared(threads, threads)) ? threads : FINEST * threads
}

/** Whether so many products come out as on one thread, to the bit. */
export async function areUnshared(threads: number, count: number): Promise<boolean> {
  const [alone, several] = [await productSession(1), await productSession(threads)]
  const [expected, found] = [await multiply(alone, count), await multiply(several, count)]
  await alone.release()
  await several.release()
  return expected.every((value, i) => value === found[i])
}

function productSession(threads: number): Promise<Session> {
  const g = new GraphBuilder('products')
  const a = g.input('a', 'float32', ['B', ROWS, INNER])
  const b = g.input('b', 'float32', ['B', INNER, COLUMNS])
  g.output(g.node('MatMul', [a, b]), 'float32', ['B', ROWS, COLUMNS], 'products')
  return Session.create('products', g.build(), { threads })
}

async function multiply(session: Session, count: number): Promise<Float32Array> {
  /** From −1 to 1, with as many digits as fit: sums in another order are other sums. */
  const numbers = (length: number, salt: number) =>
    Float32Array.from({ length }, (_, i) => Math.sin(salt + i * 1.618))
  const tensor = (rows: number, columns: number, salt: number) =>
    new Tensor('float32', numbers(count * rows * columns, salt), [count, rows, columns])
  const { products } = await session.run({ a: tensor(ROWS, INNER, 1), b: tensor(INNER, COLUMNS, 2) })
  return products!.data as Float32Array
}
