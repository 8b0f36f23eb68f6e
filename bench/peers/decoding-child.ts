/** Greedy decoding by this engine, in a process of its own: started by bench/decoding.ts, which says how. */
import { Decoder } from '../../engine/decoding/decoder.ts'
import { randomStream } from '../../engine/sampling/random-stream.ts'
import { loadModelDirectory } from '../../engine/weights/model-directory.ts'
import { readStandardInput } from './run-peer.ts'

const task = JSON.parse(await readStandardInput()) as {
  readonly model: string
  readonly threads: number
  readonly repeats: number
  readonly new: number
  readonly prompts: readonly (readonly (readonly number[])[])[]
}
const { config, weights } = await loadModelDirectory(task.model)
const most = Math.max(...task.prompts.map(({ length }) => length))
const decoder = await Decoder.create(config, {
  threads: task.threads,
  tokensPerPass: 4096,
  sequencesPerPass: most,
  // Nothing ends early, so that every run draws the same number of tokens.
  stopTokens: [],
})

async function seconds(prompts: readonly (readonly number[])[], maxNewTokens: number): Promise<number> {
  const requests = prompts.map((prompt, number) => ({
    key: String(number),
    prompt: Int32Array.from(prompt),
    random: randomStream({ seed: 1, key: String(number), policy: 0 }),
  }))
  const start = performance.now()
  await decoder.generate(weights, requests, {
    temperature: 0,
    topK: 0,
    topP: 1,
    minP: 0,
    stop: [],
    maxNewTokens,
    seed: 1,
  })
  return (performance.now() - start) / 1000
}

await seconds(task.prompts[0]!, 2)
for (const prompts of task.prompts) {
  for (let repeat = 0; repeat < task.repeats; repeat++) {
    const numbers = {
      sequences: prompts.length,
      first: await seconds(prompts, 1),
      all: await seconds(prompts, task.new),
    }
    process.stdout.write(`${JSON.stringify(numbers)}\n`)
  }
}
await decoder.release()
