/**
 * The memory that `grasp doctor` says a model takes against the greatest resident memory of a process that really
 * decodes, or samples, scores and trains.
 *
 *     node --import tsx bench/memory.ts --model DIR [--rows 1] [--prompt 512] [--response 128] [--steps 3]
 *         [--sequences 4] [--new 4] [--lag 0] [--lora 0] [--bf16] [--decode] [--json]
 *
 * `--rows` responses are trained on in one pass, `--sequences` prompts decoded together. `--lora` is a rank.
 * `--decode` only decodes.
 */
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { engineMemory } from '../engine/memory/engine-memory.ts'
import type { LoraOptions } from '../engine/port.ts'
import { readModelConfig } from '../engine/weights/model-config.ts'
import type { MemoryMark, MemoryTask } from './memory/task.ts'
import { runPeer } from './peers/run-peer.ts'

const { values: flags } = parseArgs({
  options: {
    model: { type: 'string' },
    rows: { type: 'string', default: '1' },
    prompt: { type: 'string', default: '512' },
    response: { type: 'string', default: '128' },
    steps: { type: 'string', default: '3' },
    sequences: { type: 'string', default: '4' },
    new: { type: 'string', default: '4' },
    lag: { type: 'string', default: '0' },
    lora: { type: 'string', default: '0' },
    bf16: { type: 'boolean', default: false },
    decode: { type: 'boolean', default: false },
    json: { type: 'boolean', default: false },
  },
})
if (flags.model === undefined) throw new Error('--model DIR is missing: a Hugging Face directory')
const [rows, prompt, response, rank] = [flags.rows, flags.prompt, flags.response, flags.lora].map(Number) as [
  number,
  number,
  number,
  number,
]
const lora: LoraOptions = { rank, alpha: 2 * rank, rankStabilised: false, targets: ['all-linear'], seed: 1 }
const task: MemoryTask = {
  engine: {
    path: flags.model,
    device: 'cpu',
    threads: 2,
    keepPolicies: Number(flags.lag),
    tokensPerPass: rows * (prompt + response),
    sequencesPerPass: Number(flags.sequences),
    optimiserState: flags.bf16 ? 'bf16' : 'f32',
    ...(rank > 0 && { lora }),
  },
  rows,
  prompt,
  response,
  newTokens: Number(flags.new),
  steps: Number(flags.steps),
  train: !flags.decode,
}
const mib = (bytes: number) => `${Math.round(bytes / 2 ** 20)} MiB`
const child = fileURLToPath(new URL('memory/child.ts', import.meta.url))
const marks = await runPeer<MemoryMark>([process.execPath, '--import', 'tsx', child], task)
const { config } = await readModelConfig(flags.model)
const use = engineMemory(config, {
  ...task.engine,
  responseTokens: response,
  scoredTogether: rows,
})(prompt + response)
const { parts, bytes } = flags.decode ? use.decoding : use.training
const measured = Math.max(...marks.map(mark => mark.bytes))

if (flags.json) console.log(JSON.stringify({ ...flags, parts, marks, estimate: bytes, measured }))
else {
  console.table(Object.fromEntries(parts.map(({ what, bytes }) => [what, mib(bytes)])))
  console.table(marks.map(mark => ({ 'greatest after': mark.what, memory: mib(mark.bytes) })))
  console.log(`estimated ${mib(bytes)}, measured ${mib(measured)}: ${(bytes / measured).toFixed(2)}`)
}
