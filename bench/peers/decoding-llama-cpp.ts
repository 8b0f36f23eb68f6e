/**
 * Decoding by llama.cpp through node-llama-cpp, with a cache in f32: a peer of bench/decoding.ts, which starts this.
 * Every sequence reads its own prompt, all of them side by side: node-llama-cpp shares no cache between sequences.
 */
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { checkLengths, type DecodingTask, timeCases } from './decoding-task.ts'
import { readStandardInput } from './run-peer.ts'

/** What is used of the package, which is no dependency. */
interface Sequence {
  evaluate(
    tokens: readonly number[],
    options: {
      temperature: number
      topK: number
      topP: number
      minP: number
      seed: number
      yieldEogToken: true
    },
  ): AsyncGenerator<number>
  clearHistory(): Promise<void>
}
interface Llama {
  loadModel(options: { modelPath: string; gpuLayers: 0 }): Promise<{
    createContext(options: object): Promise<{ getSequence(): Sequence }>
  }>
}

const task: DecodingTask = JSON.parse(await readStandardInput())
const entry = join(task.package!, 'node_modules/node-llama-cpp/dist/index.js')
const { getLlama } = (await import(pathToFileURL(entry).href)) as {
  getLlama(options: object): Promise<Llama>
}
const llama = await getLlama({ gpu: false, build: 'never', skipDownload: true, maxThreads: task.threads })
const model = await llama.loadModel({ modelPath: task.model, gpuLayers: 0 })
const most = Math.max(...task.cases.map(({ prompts, samples }) => prompts.length * samples))
const longest = Math.max(...task.cases.flatMap(({ prompts }) => prompts.map(({ length }) => length)))
const context = await model.createContext({
  sequences: most,
  contextSize: longest + task.new + 1,
  batchSize: Math.min(2048, most * longest),
  threads: { ideal: task.threads, min: task.threads },
  experimentalKvCacheKeyType: 'F32',
  experimentalKvCacheValueType: 'F32',
})
const sequences = Array.from({ length: most }, () => context.getSequence())

async function decode(
  sequence: Sequence,
  prompt: readonly number[],
  temperature: number,
  count: number,
  seed: number,
) {
  const options = {
    temperature,
    topK: 0,
    topP: 1,
    minP: 0,
    seed,
    yieldEogToken: true,
  } as const
  let made = 0
  for await (const _ of sequence.evaluate(prompt, options)) {
    made += 1
    if (made === count) break
  }
  return made
}

await timeCases(task, async ({ prompts, samples, temperature }, newTokens) => {
  const all = prompts.flatMap(prompt => Array.from({ length: samples }, () => prompt))
  const start = performance.now()
  const made = await Promise.all(
    all.map((prompt, i) => decode(sequences[i]!, prompt, temperature, newTokens, i + 1)),
  )
  const seconds = (performance.now() - start) / 1000
  checkLengths(made, newTokens)
  for (const sequence of sequences) await sequence.clearHistory()
  return seconds
})
process.exit(0)
