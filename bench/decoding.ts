/**
 * Decoding: prompts read and new tokens drawn, against other engines on the same model and token ids, f32. The sides take
 * turns in processes of their own; the best of all repeats counts for each.
 *
 *     node --import tsx bench/decoding.ts [--model DIR] [--prompt 128] [--new 48] [--sequences 1,16]
 *         [--cases distinct,shared,samples] [--threads 2] [--rounds 2] [--repeats 2] [--json]
 *         [--python PYTHON] [--llama-cpp FOLDER --gguf FILE] [--transformers-js DIR]
 *
 * Without `--model`, the lab's backbone. Each further side is there when it is named:
 *   --python           PyTorch with transformers' `generate`
 *   --llama-cpp        a folder with node-llama-cpp in its node_modules, and the model as a GGUF file in f32
 *                      (peers/gguf_f32.py makes one)
 *   --transformers-js  @huggingface/transformers' `generate`, and the folder that peers/onnx_export.py made of the model
 *
 * Prompts are English text (the posts and questions of examples/household). Cases of n sequences: `distinct` prompts; prompts that have their first half in common (`shared`), as the pipeline's
 * have their system text; n `samples` of one prompt at temperature 1. The others are greedy.
 */
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { readModelFiles } from '../engine/weights/model-files.ts'
import type { DecodingCase, DecodingNumbers, DecodingTask } from './peers/decoding-task.ts'
import { naturalPrompts } from './peers/natural-prompts.ts'
import { runPeer } from './peers/run-peer.ts'

const { values: flags } = parseArgs({
  options: {
    model: { type: 'string', default: 'examples/lab/backbone' },
    prompt: { type: 'string', default: '128' },
    new: { type: 'string', default: '48' },
    sequences: { type: 'string', default: '1,16' },
    cases: { type: 'string', default: 'distinct,shared,samples' },
    threads: { type: 'string', default: '2' },
    rounds: { type: 'string', default: '2' },
    repeats: { type: 'string', default: '2' },
    python: { type: 'string' },
    'llama-cpp': { type: 'string' },
    gguf: { type: 'string' },
    'transformers-js': { type: 'string' },
    json: { type: 'boolean', default: false },
  },
})
const length = Number(flags.prompt)
const newTokens = Number(flags.new)
/** A control token in SmolLM2's vocabulary that no model draws, and that no text has. */
const TURN_END = 9
const prompts = await naturalPrompts(await readModelFiles(flags.model), length)
const prompt = (number: number): number[] => prompts[number % prompts.length]!

/** The first half is the first prompt's, and ends as a message of a chat. */
function sharing(number: number): number[] {
  const half = length >> 1
  return [...prompt(0).slice(0, half - 1), TURN_END, ...prompt(number).slice(half)]
}

function casesOf(sequences: number): DecodingCase[] {
  const many = (of: (number: number) => number[]) => Array.from({ length: sequences }, (_, i) => of(i))
  const all: Record<string, DecodingCase> = {
    distinct: { name: `${sequences} distinct`, prompts: many(prompt), samples: 1, temperature: 0 },
    shared: { name: `${sequences} shared`, prompts: many(sharing), samples: 1, temperature: 0 },
    samples: { name: `${sequences} samples`, prompts: [prompt(0)], samples: sequences, temperature: 1 },
  }
  const names = flags.cases.split(',')
  const unknown = names.find(name => !Object.hasOwn(all, name))
  if (unknown !== undefined) throw new Error(`--cases ${unknown}: expected ${Object.keys(all).join(', ')}`)
  // One sequence shares with none.
  return names.filter(name => sequences > 1 || name !== 'shared').map(name => all[name]!)
}

const file = (name: string) => fileURLToPath(new URL(`peers/${name}`, import.meta.url))
const tsx = [process.execPath, '--import', 'tsx'] as const

interface Side {
  readonly name: string
  readonly command: readonly [string, ...string[]]
  readonly model: string
  readonly package?: string
}
const sides: Side[] = [{ name: 'ours', command: [...tsx, file('decoding-child.ts')], model: flags.model }]
if (flags.python !== undefined)
  sides.push({ name: 'PyTorch', command: [flags.python, file('decoding.py')], model: flags.model })
if (flags['llama-cpp'] !== undefined) {
  if (flags.gguf === undefined) throw new Error('--llama-cpp needs --gguf FILE: the model in f32')
  sides.push({
    name: 'llama.cpp',
    command: [...tsx, file('decoding-llama-cpp.ts')],
    model: flags.gguf,
    package: flags['llama-cpp'],
  })
}
if (flags['transformers-js'] !== undefined)
  sides.push({
    name: 'transformers.js',
    command: [...tsx, file('decoding-transformers-js.ts')],
    model: flags['transformers-js'],
  })

const cases = flags.sequences.split(',').flatMap(count => casesOf(Number(count)))
const taken = new Map<string, DecodingNumbers[]>(sides.map(({ name }) => [name, []]))
for (let round = 0; round < Number(flags.rounds); round++) {
  for (const side of sides) {
    const task: DecodingTask = {
      model: side.model,
      package: side.package,
      threads: Number(flags.threads),
      repeats: Number(flags.repeats),
      new: newTokens,
      turnEnd: TURN_END,
      cases,
    }
    const numbers = await runPeer<DecodingNumbers>(side.command, task)
    process.stderr.write(
      `${side.name}: ${numbers.map(({ name, all }) => `${name}: ${all.toFixed(2)} s`).join(', ')}\n`,
    )
    taken.get(side.name)!.push(...numbers)
  }
}

const round = (value: number) => Number(value.toPrecision(3))
/** New tokens a second of the whole, and of decoding alone. */
function best(side: string, { name, prompts, samples }: DecodingCase) {
  const own = taken.get(side)!.filter(numbers => numbers.name === name)
  const [first, all] = [Math.min(...own.map(n => n.first)), Math.min(...own.map(n => n.all))]
  const sequences = prompts.length * samples
  return {
    whole: (sequences * newTokens) / all,
    decoding: (sequences * (newTokens - 1)) / (all - first),
    first,
  }
}
const rows = cases.flatMap(given => {
  const ours = best('ours', given)
  return sides.map(({ name }) => {
    const numbers = best(name, given)
    return {
      case: given.name,
      side: name,
      'tokens/s': round(numbers.whole),
      ratio: round(ours.whole / numbers.whole),
      'decoding/s': round(numbers.decoding),
      'decoding ratio': round(ours.decoding / numbers.decoding),
      'first token, s': round(numbers.first),
    }
  })
})

if (flags.json) console.log(JSON.stringify({ ...flags, rows }))
else console.table(rows)
