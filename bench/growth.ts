/**
 * How time and memory of a GRASP step (teacher's hidden states, student's forward and backward pass, clipping, AdamW)
 * grow: with the response, with the vocabulary, with layers and with tokens. SmolLM2-135M's shape, random weights, f32,
 * one sequence. Every cell is a process of its own: the time is that of the fastest step after the first, the memory
 * the peak of all resident memory.
 *
 *     node --import tsx bench/growth.ts [--part loss,layers] [--python python3]
 *         [--threads 2] [--steps 3] [--most 2048] [--layers 2,8,30] [--tokens 128,512,2048] [--json]
 *
 * `--python` puts PyTorch with transformers beside ours. `--most` leaves responses out with which `loss` has more
 * tokens, `--layers` and `--tokens` are the sizes of `layers`. Slopes are
 * logarithms of growth over logarithms of what it grew with: 0 is constant, 1 proportional, 2 quadratic.
 *
 * What the loss adds is by how much more memory grows from the shortest response on than it does with a vocabulary of
 * 512, where layers and optimiser do the same and the loss next to nothing. Beside it the size of all logits [T, V], of
 * which a loss that is not cut into chunks holds several.
 */
import { rmSync } from 'node:fs'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { type Cell, type Measured, measureCell } from './growth/cell.ts'

const { values: flags } = parseArgs({
  options: {
    part: { type: 'string', default: 'loss,layers' },
    python: { type: 'string' },
    threads: { type: 'string', default: '2' },
    steps: { type: 'string', default: '3' },
    most: { type: 'string', default: '2048' },
    layers: { type: 'string', default: '2,8,30' },
    tokens: { type: 'string', default: '128,512,2048' },
    json: { type: 'boolean', default: false },
  },
})
const VOCABULARY = 49_152
const FEW_LAYERS = 2
const PROMPT = 128
/** So small that head and loss take next to nothing. */
const NO_VOCABULARY = 512

const folder = await mkdtemp(join(tmpdir(), 'grasp-growth-'))
for (const signal of ['SIGINT', 'SIGTERM'] as const) {
  process.once(signal, () => {
    rmSync(folder, { recursive: true, force: true })
    process.exit(1)
  })
}
const options = {
  folder,
  threads: Number(flags.threads),
  steps: Number(flags.steps),
}

async function cell(shape: Cell, python?: string): Promise<Measured> {
  const measured = await measureCell(shape, { ...options, ...(python !== undefined && { python }) })
  process.stderr.write(
    `${shape.layers} layers, V ${shape.vocabulary}, ${shape.prompt} + ${shape.response} tokens: ` +
      `${measured.ours.milliseconds} ms, ${measured.ours.peak} MiB` +
      (measured.peer ? `; PyTorch ${measured.peer.milliseconds} ms, ${measured.peer.peak} MiB\n` : '\n'),
  )
  return measured
}

const within = (tokens: number) => tokens <= Number(flags.most)
const slope = (value: number, before: number, by: number) =>
  Number((Math.log(value / before) / Math.log(by)).toFixed(2))

function peerColumns({ peer }: Measured) {
  return peer && { 'PyTorch ms': peer.milliseconds, 'PyTorch MiB': peer.peak }
}

const TABLES = {
  /** By the response, at a fixed prompt, and by the vocabulary. */
  loss: async () => {
    const rows: Record<string, number | undefined>[] = []
    const responses = [16, 128, 512, 1920].filter(response => within(PROMPT + response))
    const [none, ...vocabularies] = [NO_VOCABULARY, 8_192, VOCABULARY, 151_936]
    const grid = new Map<string, Measured['ours']>()
    const of = (response: number, vocabulary: number) => grid.get(`${response} ${vocabulary}`)!
    for (const vocabulary of [none!, ...vocabularies]) {
      for (const [i, response] of responses.entries()) {
        const shape = { layers: FEW_LAYERS, vocabulary, prompt: PROMPT, response }
        const measured = await cell(shape, vocabulary === none ? undefined : flags.python)
        const { ours } = measured
        grid.set(`${response} ${vocabulary}`, ours)
        if (vocabulary === none) continue
        const least = responses[0]!
        const grown = (size: number) => of(response, size).peak - of(least, size).peak
        const before = i > 0 ? of(responses[i - 1]!, vocabulary) : undefined
        rows.push({
          vocabulary,
          response,
          ms: ours.milliseconds,
          'slope of ms':
            before && slope(ours.milliseconds, before.milliseconds, response / responses[i - 1]!),
          MiB: ours.peak,
          'loss adds, MiB': grown(vocabulary) - grown(none!),
          'logits, MiB': Math.round((response * vocabulary * 4) / 2 ** 20),
          ...peerColumns(measured),
        })
      }
    }
    return rows
  },
  layers: async () => {
    const rows: Record<string, number | undefined>[] = []
    const grid = new Map<string, Measured['ours']>()
    const layersAll = flags.layers.split(',').map(Number)
    const tokensAll = flags.tokens.split(',').map(Number)
    for (const [i, layers] of layersAll.entries()) {
      for (const [j, tokens] of tokensAll.entries()) {
        const response = tokens / 4
        const shape = { layers, vocabulary: VOCABULARY, prompt: tokens - response, response }
        const measured = await cell(shape, flags.python)
        const { ours } = measured
        grid.set(`${layers} ${tokens}`, ours)
        const fewerTokens = grid.get(`${layers} ${tokensAll[j - 1]}`)
        const fewerLayers = grid.get(`${layersAll[i - 1]} ${tokens}`)
        const byTokens = tokens / tokensAll[j - 1]!
        const byLayers = layers / layersAll[i - 1]!
        rows.push({
          layers,
          tokens,
          ms: ours.milliseconds,
          'by tokens': fewerTokens && slope(ours.milliseconds, fewerTokens.milliseconds, byTokens),
          'by layers': fewerLayers && slope(ours.milliseconds, fewerLayers.milliseconds, byLayers),
          MiB: ours.peak,
          'MiB by tokens': fewerTokens && slope(ours.peak, fewerTokens.peak, byTokens),
          'MiB by layers': fewerLayers && slope(ours.peak, fewerLayers.peak, byLayers),
          ...peerColumns(measured),
        })
      }
    }
    return rows
  },
} as const
type Part = keyof typeof TABLES

const parts = flags.part.split(',')
const unknown = parts.find(part => !Object.hasOwn(TABLES, part))
if (unknown !== undefined) throw new Error(`--part ${unknown}: expected ${Object.keys(TABLES).join(', ')}`)
try {
  for (const part of parts) {
    const rows = await TABLES[part as Part]()
    if (flags.json) console.log(JSON.stringify({ ...flags, part, rows }))
    else {
      console.log(part)
      console.table(rows)
    }
  }
} finally {
  await rm(folder, { recursive: true, force: true })
}
