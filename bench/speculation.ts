/**
 * What drafts gain in decoding, on prompts of natural language: those of the household example, whose responses quote
 * what the person wrote. Without drafts and with drafts from the text take turns in one process; the best of all repeats
 * counts. Every response is checked to be the same.
 *
 *     node --import tsx bench/speculation.ts --model DIR [--new 48] [--sequences 1,4,16] [--temperatures 0,1]
 *         [--threads 2] [--repeats 2]
 *
 * Where there are fewer sequences than prompts, they are decoded one group after the other.
 */
import assert from 'node:assert/strict'
import { readFile } from 'node:fs/promises'
import { parseArgs } from 'node:util'
import { Decoder } from '../engine/decoding/decoder.ts'
import type { Request } from '../engine/decoding/row.ts'
import type { Generation } from '../engine/port.ts'
import { randomStream } from '../engine/sampling/random-stream.ts'
import { ChatTokenizer } from '../engine/tokens/chat-tokenizer.ts'
import { loadModelDirectory } from '../engine/weights/model-directory.ts'

const { values: flags } = parseArgs({
  options: {
    model: { type: 'string' },
    new: { type: 'string', default: '48' },
    sequences: { type: 'string', default: '1,4,16' },
    temperatures: { type: 'string', default: '0,1' },
    threads: { type: 'string', default: '2' },
    repeats: { type: 'string', default: '2' },
    prompts: { type: 'string', default: '16' },
  },
})
if (!flags.model) throw new Error('--model DIR is needed')
const model = await loadModelDirectory(flags.model)
const { config, weights } = model
const tokenizer = ChatTokenizer.load(model, model.rawConfig, config.vocabularySize)
const threads = Number(flags.threads)

interface Item {
  readonly question: string
  readonly profile: readonly { readonly text: string }[]
}
const data = await readFile(new URL('../examples/household/data/train.jsonl', import.meta.url), 'utf8')
const items = data
  .trim()
  .split('\n')
  .slice(0, Number(flags.prompts))
  .map(line => JSON.parse(line) as Item)
const requests = items.map(({ question, profile }, number): Request => {
  const posts = profile.slice(0, 4).map(({ text }) => `- ${text}`)
  const content = `What this person wrote earlier:\n${posts.join('\n')}\n\n${question}`
  const system =
    'You advise the people of a shared house. Answer in one short paragraph, in a way that suits the person who asks.'
  const prompt = tokenizer.encodeChat([
    { role: 'system', content: system },
    { role: 'user', content },
  ])
  return { key: `${number}`, prompt, random: randomStream({ seed: 1, key: `${number}`, policy: 0 }) }
})

const NONE = () => ({ tokens: [], matched: 0 })
const MODES = { none: { textDraft: NONE }, text: {} }
type Mode = keyof typeof MODES

const decoders = new Map<Mode, Decoder>()
for (const [mode, options] of Object.entries(MODES)) {
  const shared = { threads, tokensPerPass: 4096, sequencesPerPass: 16, stopTokens: [] }
  decoders.set(mode as Mode, await Decoder.create(config, { ...shared, ...options }))
}
async function run(mode: Mode, group: readonly Request[], temperature: number, maxNewTokens: number) {
  const sampling = { temperature, topK: 0, topP: 1, minP: 0, stop: [], maxNewTokens, seed: 1 }
  const began = performance.now()
  const made = await decoders.get(mode)!.generate(weights, group, sampling)
  return { made, seconds: (performance.now() - began) / 1000 }
}

// Matrices are packed here.
for (const mode of decoders.keys()) await run(mode, requests.slice(0, 1), 1, 2)
const rows = []
for (const count of flags.sequences.split(',').map(Number)) {
  for (const temperature of flags.temperatures.split(',').map(Number)) {
    const best: Record<Mode, number> = { none: Infinity, text: Infinity }
    let expected: Generation[] | undefined
    const group = requests.slice(0, Math.max(count, 4))
    for (let repeat = 0; repeat < Number(flags.repeats); repeat++) {
      for (const mode of Object.keys(MODES) as Mode[]) {
        let seconds = 0
        const all: Generation[] = []
        for (let from = 0; from < group.length; from += count) {
          const one = await run(mode, group.slice(from, from + count), temperature, Number(flags.new))
          seconds += one.seconds
          all.push(...one.made)
        }
        best[mode] = Math.min(best[mode], seconds)
        expected ??= all
        assert.deepEqual(all, expected)
      }
    }
    const rate = (mode: Mode) => Number(((group.length * Number(flags.new)) / best[mode]).toPrecision(3))
    rows.push({ sequences: count, temperature, none: rate('none'), text: rate('text') })
  }
}
console.table(rows)
for (const decoder of decoders.values()) await decoder.release()
