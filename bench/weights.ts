/**
 * Loads a model directory, hashes its weights, steps AdamW with and without hashing beside it, saves checkpoints, and
 * publishes policies as the trainer does, keeping two, on the disk when the export returns or not, in turn:
 * `node --import tsx bench/weights.ts DIR [CHECKPOINT]` (a folder that is made and removed; none: nothing is saved).
 */
import { createHash } from 'node:crypto'
import { rm } from 'node:fs/promises'
import { join } from 'node:path'
import { saveCheckpoint } from '../engine/checkpoint/checkpoint.ts'
import { adamw, initialState } from '../engine/optimiser/adamw.ts'
import { replaceFolder } from '../engine/weights/durable.ts'
import { HashThread } from '../engine/weights/hash-thread.ts'
import { loadModelDirectory } from '../engine/weights/model-directory.ts'
import { WeightsHasher, weightsHash } from '../engine/weights/weights-hash.ts'
import { writeModel } from '../engine/weights/write-model.ts'

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
  const save = (what: string) => timed(what, () => saveCheckpoint(checkpoint, model, state, hash))
  for (let round = 0; round < 3; round++) await save('checkpoint')
  const published = (version: number) => join(`${checkpoint}-policies`, String(version))
  for (let version = 0; version < 12; version++) {
    const durable = Math.floor(version / 3) % 2 === 0
    const fill = async (folder: string) => {
      await writeModel(folder, model, weights, 'f32', { durable })
    }
    await timed(durable ? 'policy, on the disk' : 'policy, not waited for', () =>
      replaceFolder(published(version), undefined, fill, { durable }),
    )
    await timed('prune', () => rm(published(version - 2), { recursive: true, force: true }))
    if (version % 3 === 2) await save('checkpoint after these')
  }
  await rm(`${checkpoint}-policies`, { recursive: true })
  await rm(checkpoint, { recursive: true })
}
