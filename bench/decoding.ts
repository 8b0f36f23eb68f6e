/**
 * Times sampling: tokens a second of reading prompts and of decoding, by the number of sequences decoded
 * together. `node --import tsx bench/decoding.ts [--model DIR] [--prompt 256] [--new 64] [--sequences 1,16,32]
 * [--threads 2] [--repeats 3] [--json]`; without `--model`, the lab's backbone. The best of the repeats counts;
 * processor time (of all threads) says more on a machine that is busy with other things.
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
    repeats: { type: 'string', default: '3' },
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

interface Time {
  readonly wall: number
  readonly processor: number
}

/** Milliseconds that `sequences` responses of `tokens` tokens take. */
async function timeOnce(sequences: number, tokens: number): Promise<Time> {
  const requests = Array.from({ length: sequences }, (_, number) => ({
    key: String(number),
    prompt: Int32Array.from({ length }, (_, i) => (number * 7919 + i * 104729) % config.vocabularySize),
    random: randomStream({ seed: 1, key: String(number), policy: 0 }),
  }))
  const sampling = { temperature: 1, topK: 0, topP: 1, maxNewTokens: tokens, seed: 1 }
  const [start, before] = [performance.now(), process.cpuUsage()]
  await decoder.generate(weights, requests, sampling)
  const { user, system } = process.cpuUsage(before)
  return { wall: performance.now() - start, processor: (user + system) / 1000 }
}

async function time(sequences: number, tokens: number): Promise<Time> {
  let best: Time = { wall: Number.POSITIVE_INFINITY, processor: Number.POSITIVE_INFINITY }
  for (let repeat = 0; repeat < Number(values.repeats); repeat++) {
    const { wall, processor } = await timeOnce(sequences, tokens)
    best = { wall: Math.min(best.wall, wall), processor: Math.min(best.processor, processor) }
  }
  return best
}

await timeOnce(2, 4)
const results: Record<string, number>[] = []
for (const sequences of values.sequences.split(',').map(Number)) {
  // One token a response takes its prompt only; what is left of the whole is decoding.
  const reading = await time(sequences, 1)
  const all = await time(sequences, maxNewTokens)
  const read = sequences * length
  const drawn = sequences * (maxNewTokens - 1)
  results.push({
    sequences,
    promptTokensPerSecond: round((1000 * read) / reading.wall),
    promptProcessorMs: round(reading.processor / read),
    newTokensPerSecond: round((1000 * drawn) / (all.wall - reading.wall)),
    newProcessorMs: round((all.processor - reading.processor) / drawn),
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
  return Number(value.toPrecision(3))
}
