/** Decoding by this engine, in a process of its own: started by bench/decoding.ts, which says how. */
import { Decoder } from '../../engine/decoding/decoder.ts'
import { randomStream } from '../../engine/sampling/random-stream.ts'
import { loadModelDirectory } from '../../engine/weights/model-directory.ts'
import { checkLengths, type DecodingTask, timeCases } from './decoding-task.ts'
import { readStandardInput } from './run-peer.ts'

const task: DecodingTask = JSON.parse(await readStandardInput())
const { config, weights } = await loadModelDirectory(task.model)
const decoder = await Decoder.create(config, {
  threads: task.threads,
  tokensPerPass: 4096,
  sequencesPerPass: Math.max(...task.cases.map(({ prompts, samples }) => prompts.length * samples)),
  stopTokens: [task.turnEnd],
})

await timeCases(task, async ({ prompts, samples, temperature }, maxNewTokens) => {
  const requests = prompts.flatMap((prompt, number) =>
    Array.from({ length: samples }, (_, sample) => ({
      key: String(number),
      prompt: Int32Array.from(prompt),
      random: randomStream({ seed: 1, key: String(number), policy: 0, sample }),
    })),
  )
  const options = { temperature, topK: 0, topP: 1, minP: 0, stop: [], maxNewTokens, seed: 1 }
  const start = performance.now()
  const made = await decoder.generate(weights, requests, options)
  const seconds = (performance.now() - start) / 1000
  checkLengths(
    made.map(({ ids }) => ids.length),
    maxNewTokens,
  )
  return seconds
})
await decoder.release()
