/**
 * Greedy decoding: prompts read and new tokens drawn, by the number of sequences decoded together, against the
 * `generate` of PyTorch's transformers on the same model and tokens, f32. The sides take turns in processes of their
 * own; the best of all repeats counts for both.
 *
 *     node --import tsx bench/decoding.ts [--model DIR] [--prompt 128] [--new 48] [--sequences 1,16]
 *         [--threads 2] [--rounds 2] [--repeats 2] [--python python3] [--ours] [--json]
 *
 * Without `--model`, the lab's backbone. `--ours` leaves the peer out.
 */
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { readModelConfig } from '../engine/weights/model-config.ts'
import { runPeer } from './peers/run-peer.ts'

const { values: flags } = parseArgs({
  options: {
    model: { type: 'string', default: 'examples/lab/backbone' },
    prompt: { type: 'string', default: '128' },
    new: { type: 'string', default: '48' },
    sequences: { type: 'string', default: '1,16' },
    threads: { type: 'string', default: '2' },
    rounds: { type: 'string', default: '2' },
    repeats: { type: 'string', default: '2' },
    python: { type: 'string', default: 'python3' },
    ours: { type: 'boolean', default: false },
    json: { type: 'boolean', default: false },
  },
})
const { config } = await readModelConfig(flags.model)
const counts = flags.sequences.split(',').map(Number)
const length = Number(flags.prompt)
const task = {
  model: flags.model,
  threads: Number(flags.threads),
  repeats: Number(flags.repeats),
  new: Number(flags.new),
  prompts: counts.map(count =>
    Array.from({ length: count }, (_, number) =>
      Array.from({ length }, (_, i) => (number * 7919 + i * 104_729 + 11) % config.vocabularySize),
    ),
  ),
}

/** Seconds to the first new token of every sequence, and to the last. */
interface Numbers {
  readonly sequences: number
  readonly first: number
  readonly all: number
}

const file = (name: string) => fileURLToPath(new URL(`peers/${name}`, import.meta.url))
const SIDES = {
  ours: [process.execPath, '--import', 'tsx', file('decoding-child.ts')],
  peer: [flags.python, file('decoding.py')],
} as const
type Side = keyof typeof SIDES

const taken: Record<Side, Numbers[]> = { ours: [], peer: [] }
const sides: Side[] = flags.ours ? ['ours'] : ['ours', 'peer']
for (let round = 0; round < Number(flags.rounds); round++) {
  for (const side of sides) {
    const numbers = await runPeer<Numbers>(SIDES[side], task)
    process.stderr.write(
      `${side}: ${numbers.map(({ sequences, all }) => `${sequences}: ${all.toFixed(2)} s`).join(', ')}\n`,
    )
    taken[side].push(...numbers)
  }
}

function best(side: Side, sequences: number) {
  const own = taken[side].filter(numbers => numbers.sequences === sequences)
  const [first, all] = [Math.min(...own.map(n => n.first)), Math.min(...own.map(n => n.all))]
  return {
    /** New tokens a second, reading the prompts included. */
    whole: (sequences * task.new) / all,
    /** Of decoding alone. */
    decoding: (sequences * (task.new - 1)) / (all - first),
    reading: (sequences * length) / first,
  }
}
const rows = counts.map(sequences => {
  const ours = best('ours', sequences)
  const round = (value: number) => Number(value.toPrecision(3))
  const own = {
    sequences,
    'tokens/s': round(ours.whole),
    'decoding/s': round(ours.decoding),
    'read/s': round(ours.reading),
  }
  if (flags.ours) return own
  const peer = best('peer', sequences)
  return {
    ...own,
    'PyTorch tokens/s': round(peer.whole),
    'decoding ratio': round(ours.decoding / peer.decoding),
    ratio: round(ours.whole / peer.whole),
  }
})

if (flags.json) console.log(JSON.stringify({ ...flags, rows }))
else console.table(rows)
