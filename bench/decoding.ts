/**
 * Times sampling: tokens a second of reading prompts and of decoding, by the number of sequences decoded
 * together. `node --import tsx bench/decoding.ts [--model DIR] [--prompt 256] [--new 64] [--sequences 1,16,32]
 * [--threads 2] [--json]`; without `--model`, the lab's backbone.
 */
import { parseArgs } from 'node:util'
import { Decoder } from '../engine/decoding/decoder.ts'
import { randomStream } from '../engine/sampling/random-stream.ts'
import { loadModelDirectory } from '../engine/weights/model-directory.ts'

const { values } = parseArgs({
  options: {
    model: { type: 'string', default: 'examples/lab/backbone' },
    prompt: { type: 'string', default: '256' },
    new: { type: 'string', default: '64' },
    sequences: { type: 'string', default: '1,16,32' },
    threads: { type: 'string', default: '2' },
    json: { type: 'boolean', default: false },
  },
})
const length = Number(values.prompt)
const maxNewTokens = Number(values.new)
const { config, weights } = await loadModelDirectory(values.model)
const decoder = await Decoder.create(config, {
  threads: Number(values.threads),
  tokensPerPass: 4096,
  sequencesPerPass: 32,
  // Nothing ends early, so that every run draws the same number of tokens.
  stopTokens: [],
})

async function seconds(sequences: number, tokens: number): Promise<number> {
  const requests = Array.from({ length: sequences }, (_, number) => ({
    key: String(number),
    prompt: Int32Array.from({ length }, (_, i) => (number * 7919 + i * 104729) % config.vocabularySize),
    random: randomStream({ seed: 1, key: String(number), policy: 0 }),
  }))
  const sampling = { temperature: 1, topK: 0, topP: 1, maxNewTokens: tokens, seed: 1 }
  const start = performance.now()
  await decoder.generate(weights, requests, sampling)
  return (performance.now() - start) / 1000
}

await seconds(2, 4)
const results: Record<string, number>[] = []
for (const sequences of values.sequences.split(',').map(Number)) {
  // One token a response takes its prompt only; what is left of the whole is decoding.
  const reading = await seconds(sequences, 1)
  const all = await seconds(sequences, maxNewTokens)
  results.push({
    sequences,
    promptTokensPerSecond: round((sequences * length) / reading),
    newTokensPerSecond: round((sequences * (maxNewTokens - 1)) / (all - reading)),
  })
}
await decoder.release()
const peakMegabytes = Math.round(process.resourceUsage().maxRSS / 1024)

if (values.json) {
  console.log(
    JSON.stringify({ model: values.model, prompt: length, new: maxNewTokens, results, peakMegabytes }),
  )
} else {
  console.table(results)
  console.log(`peak memory ${peakMegabytes} MB`)
}

function round(value: number): number {
  return Math.round(value * 10) / 10
}
