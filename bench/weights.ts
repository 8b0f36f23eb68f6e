/**
 * Loads a model directory, hashes its weights, steps AdamW with and without hashing beside it, and saves checkpoints:
 * `node --import tsx bench/weights.ts DIR [CHECKPOINT]` (a folder that is made and removed; none: nothing is saved).
 */
import { createHash } from 'node:crypto'
import { rm } from 'node:fs/promises'
import { saveCheckpoint } from '../engine/checkpoint/checkpoint.ts'
import { adamw, initialState } from '../engine/optimiser/adamw.ts'
import { HashThread } from '../engine/weights/hash-thread.ts'
import { loadModelDirectory } from '../engine/weights/model-directory.ts'
import { WeightsHasher, weightsHash } from '../engine/weights/weights-hash.ts'

const [path, checkpoint] = process.argv.slice(2)
if (path === undefined) throw new Error('name a model directory')

/** Wall seconds, and processor seconds of all threads. */
async function timed<T>(what: string, work: () => T | Promise<T>): Promise<T> {
  const [began, before] = [performance.now(), process.cpuUsage()]
  const result = await work()
  const seconds = (performance.now() - began) / 1000
  const { user, system } = process.cpuUsage(before)
  const cpu = `processor ${(user / 1e6).toFixed(2)} s + system ${(system / 1e6).toFixed(2)} s`
  console.log(`${what.padEnd(32)} ${seconds.toFixed(2).padStart(6)} s   ${cpu}`)
  return result
}

const before = process.memoryUsage().rss
const { weights, rawConfig, companions } = await timed('load', () => loadModelDirectory(path))
const bytes = [...weights.values()].reduce((sum, tensor) => sum + 4 * tensor.size, 0)
const grown = process.resourceUsage().maxRSS * 1024 - before
console.log(
  `weights ${(bytes / 1e6).toFixed(1)} MB in f32; loading took ${(grown / 1e6).toFixed(1)} MB at most`,
)

const thread = new HashThread()
while (!thread.isReady) await new Promise(wait => setTimeout(wait, 5))
const options = { learningRate: 1e-6, betas: [0.9, 0.99], epsilon: 1e-8, weightDecay: 0.1 } as const
const optimiser = initialState(weights)
const gradients = new Map([...weights].map(([name, { size }]) => [name, new Float32Array(size).fill(1e-3)]))
const step = (made?: WeightsHasher) =>
  adamw(
    weights,
    name => gradients.get(name)!,
    1,
    optimiser,
    options,
    (name, tensor) => made?.add(name, tensor),
  )
let hash = ''
for (let round = 0; round < 3; round++) {
  const updated = await timed('AdamW', () => step())
  hash = await timed('hash', () => weightsHash(updated))
  await timed('AdamW, hashing on a thread', () => {
    const hasher = new WeightsHasher(thread.hash())
    step(hasher)
    return hasher.digest()
  })
  await timed('AdamW, hashing on its own thread', () => {
    const hasher = new WeightsHasher(createHash('sha256'))
    step(hasher)
    return hasher.digest()
  })
}
await thread.close()

if (checkpoint !== undefined) {
  const model = { rawConfig, companions, teacher: weights, teacherHash: hash }
  const state = { policyVersion: 1, policies: new Map([[1, weights]]), optimiser, state: {} }
  for (let round = 0; round < 3; round++) {
    await timed('checkpoint', () => saveCheckpoint(checkpoint, model, state, hash))
  }
  await rm(checkpoint, { recursive: true })
}
