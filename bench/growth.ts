/**
 * How time and memory of a GRASP step (teacher's hidden states, student's forward and backward pass, clipping, AdamW)
 * grow: with the response, with the vocabulary, with layers and with tokens. SmolLM2-135M's shape, random weights, f32,
 * one sequence. Every cell is a process of its own: the time is that of the fastest step after the first, the memory
 * the peak of all resident memory.
 *
 *     node --import tsx bench/growth.ts [--part response,vocabulary,layers] [--python python3]
 *         [--threads 2] [--steps 3] [--most 2048] [--json]
 *
 * `--python` puts PyTorch with transformers beside ours. `--most` leaves cells of more tokens out. Slopes are
 * logarithms of growth over logarithms of what it grew with: 0 is constant, 1 proportional, 2 quadratic.
 *
 * What the loss adds: the same tokens are given once more with all but 16 of them in the prompt. Layers and optimiser do
 * the same then, and only the head and the loss have less to do.
 */
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { type Cell, type Measured, measureCell } from './growth/cell.ts'

const { values: flags } = parseArgs({
  options: {
    part: { type: 'string', default: 'response,vocabulary,layers' },
    python: { type: 'string' },
    threads: { type: 'string', default: '2' },
    steps: { type: 'string', default: '3' },
    most: { type: 'string', default: '2048' },
    json: { type: 'boolean', default: false },
  },
})
const VOCABULARY = 49_152
const FEW_LAYERS = 2
/** Response tokens of a cell whose loss is next to nothing. */
const FEW_TOKENS = 16

const folder = await mkdtemp(join(tmpdir(), 'grasp-growth-'))
const options = {
  folder,
  threads: Number(flags.threads),
  steps: Number(flags.steps),
}

async function cell(shape: Cell, python?: string): Promise<Measured> {
  const measured = await measureCell(shape, { ...options, ...(python !== undefined && { python }) })
  process.stderr.write(
    `${shape.layers} layers, V ${shape.vocabulary}, ${shape.prompt} + ${shape.response} tokens: ` +
      `${measured.ours.milliseconds} ms, ${measured.ours.peak} MiB\n`,
  )
  return measured
}

const within = (tokens: number) => tokens <= Number(flags.most)
const slope = (value: number, before: number, by: number) =>
  Number((Math.log(value / before) / Math.log(by)).toFixed(2))

function peerColumns({ peer }: Measured) {
  return peer && { 'PyTorch ms': peer.milliseconds, 'PyTorch MiB': peer.peak }
}

/** Rows of one varied size: each cell, and the same tokens with next to no loss. */
async function lossRows(name: string, cells: readonly (Cell & { readonly by: number })[]) {
  const rows: Record<string, number | undefined>[] = []
  let before: { readonly by: number; readonly ms: number; readonly MiB: number } | undefined
  for (const { by, ...shape } of cells) {
    const whole = await cell(shape, flags.python)
    const tokens = shape.prompt + shape.response
    const { ours: little } = await cell({ ...shape, prompt: tokens - FEW_TOKENS, response: FEW_TOKENS })
    const { milliseconds: ms, peak: MiB } = whole.ours
    const growth = before && by / before.by
    rows.push({
      [name]: by,
      ms,
      'slope of ms': before && slope(ms, before.ms, growth!),
      MiB,
      'slope of MiB': before && slope(MiB, before.MiB, growth!),
      'loss ms': ms - little.milliseconds,
      'loss MiB': MiB - little.peak,
      'logits MiB': Math.round((shape.response * shape.vocabulary * 4) / 2 ** 20),
      ...peerColumns(whole),
    })
    before = { by, ms, MiB }
  }
  return rows
}

const TABLES = {
  /** At a fixed prompt. */
  response: () =>
    lossRows(
      'response',
      [32, 128, 512, 1920]
        .filter(response => within(128 + response))
        .map(response => ({
          by: response,
          layers: FEW_LAYERS,
          vocabulary: VOCABULARY,
          prompt: 128,
          response,
        })),
    ),
  vocabulary: () =>
    lossRows(
      'vocabulary',
      [8_192, 49_152, 151_936].map(vocabulary => ({
        by: vocabulary,
        layers: FEW_LAYERS,
        vocabulary,
        prompt: 128,
        response: 512,
      })),
    ),
  layers: async () => {
    const rows: Record<string, number | undefined>[] = []
    const grid = new Map<string, Measured['ours']>()
    const layersAll = [2, 8, 30]
    const tokensAll = [128, 512, 2048].filter(within)
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
