import assert from 'node:assert/strict'
import { test } from 'node:test'
import { areUnshared, unsharedProducts } from '../../../engine/runtime/unshared-products.ts'

test('threads that share a product add in another order, and as many products as are told are not shared', async () => {
  assert.equal(await unsharedProducts(1), 1)
  for (const threads of [2, 3, 8]) {
    // Other processors may add alike however a product is cut.
    if (process.arch === 'x64') assert.equal(await areUnshared(threads, 1), false)
    const products = await unsharedProducts(threads)
    assert([threads, 4 * threads].includes(products), `${products} for ${threads} threads`)
    assert.equal(await areUnshared(threads, products), true)
  }
})
