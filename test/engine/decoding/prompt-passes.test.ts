import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type PassLimits, PromptPasses } from '../../../engine/decoding/prompt-passes.ts'

const END = 7
const LIMITS: PassLimits = { tokens: 64, turnEnds: new Set([END]), bytes: 1000 }

/** Tokens that count up from 100, with others put over them. */
function ids(length: number, over: Readonly<Record<number, number>> = {}): Int32Array {
  return Int32Array.from({ length }, (_, i) => over[i] ?? 100 + i)
}

function cuts(prompt: Int32Array, limits = LIMITS): number[] {
  return new PromptPasses([prompt], limits).of(0).map(({ start, end }, i, all) => {
    assert.equal(start, i === 0 ? 0 : all[i - 1]!.end)
    return end
  })
}

/** Reads the prompts in order and says which passes were run, as `start-end`. */
async function runs(prompts: readonly Int32Array[], limits = LIMITS): Promise<string[]> {
  const passes = new PromptPasses<string>(prompts, limits)
  const run: string[] = []
  for (const [index, prompt] of prompts.entries()) {
    for (const pass of passes.of(index)) {
      const before = prompt.slice(0, pass.end).join()
      const result = await passes.read(pass, 400, async () => {
        run.push(`${pass.start}-${pass.end}`)
        return before
      })
      assert.equal(result, before)
    }
  }
  return run
}

test('a prompt is cut after its first message, then at equal distances', () => {
  assert.deepEqual(cuts(ids(1)), [1])
  assert.deepEqual(cuts(ids(64)), [64])
  assert.deepEqual(cuts(ids(150)), [64, 128, 150])
  assert.deepEqual(cuts(ids(150, { 39: END, 80: END })), [40, 104, 150])
  assert.deepEqual(cuts(ids(40, { 39: END })), [40])
  // Too short for a pass of its own, too long for one.
  assert.deepEqual(cuts(ids(150, { 10: END, 50: END })), [64, 128, 150])
  assert.deepEqual(cuts(ids(150, { 64: END })), [64, 128, 150])
})

test('what prompts begin with together is read once', async () => {
  const a = ids(150, { 39: END })
  const b = ids(150, { 39: END, 120: 1 })
  const c = ids(60, { 39: END })
  assert.deepEqual(await runs([a, b, c]), ['0-40', '40-104', '104-150', '104-150', '40-60'])
  assert.deepEqual(await runs([a, ids(150, { 3: 1, 39: END })]), [
    ...['0-40', '40-104', '104-150'],
    ...['0-40', '40-104', '104-150'],
  ])
})

test('the same prompt is read once, however often and whatever comes between', async () => {
  const [a, b] = [ids(30), ids(30, { 29: 1 })]
  assert.deepEqual(await runs([a, a, b, a, b]), ['0-30', '0-30'])
})

test('what has no room is read again, and room is given back', async () => {
  const [a, b, c] = [ids(20), ids(21), ids(22)]
  // Two of 400 bytes fit into 1000; the third is read at each of its turns.
  assert.deepEqual(await runs([a, b, c, c, a, b, c]), ['0-20', '0-21', '0-22', '0-22', '0-22'])
  // Once a has had its last turn, c finds room.
  assert.deepEqual(await runs([a, b, a, c, c, b]), ['0-20', '0-21', '0-22'])
  assert.deepEqual(await runs([a, a], { ...LIMITS, bytes: 0 }), ['0-20', '0-20'])
})
