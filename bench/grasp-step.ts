/**
 * One GRASP step (teacher's hidden states, student's forward and backward pass, clipping, AdamW) against PyTorch
 * with transformers, on the same model and tokens, f32, one sequence. The sides take turns, each in a process of
 * its own; of each side the median of the steps from the third on counts, and the greatest peak of memory.
 *
 *     node --import tsx bench/grasp-step.ts --model DIR [--python python3] [--prompt 512] [--response 128]
 *         [--threads 2] [--rounds 2] [--steps 5] [--ours] [--profile PREFIX] [--json]
 *
 * `--ours` leaves the peer out. `--profile` writes onnxruntime's profiles of our side.
 */
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { readModelConfig } from '../engine/weights/model-config.ts'
import { runPeer } from './peers/run-peer.ts'
import type { StepNumbers, StepTask } from './peers/step-task.ts'

const { values: flags } = parseArgs({
  options: {
    model: { type: 'string' },
    python: { type: 'string', default: 'python3' },
    prompt: { type: 'string', default: '512' },
    response: { type: 'string', default: '128' },
    threads: { type: 'string', default: '2' },
    rounds: { type: 'string', default: '2' },
    steps: { type: 'string', default: '5' },
    ours: { type: 'boolean', default: false },
    profile: { type: 'string' },
    json: { type: 'boolean', default: false },
  },
})
if (flags.model === undefined) throw new Error('--model DIR is missing: a Hugging Face directory')
const { config } = await readModelConfig(flags.model)

/** Tokens that mean nothing, but differ; teacher and student see different prompts of one length. */
function tokens(count: number, salt: number): number[] {
  return Array.from({ length: count }, (_, i) => (salt + 7919 * i + 104_729 * i * i) % config.vocabularySize)
}
const task: StepTask = {
  model: flags.model,
  threads: Number(flags.threads),
  steps: Number(flags.steps),
  studentPrompt: tokens(Number(flags.prompt), 11),
  teacherPrompt: tokens(Number(flags.prompt), 13),
  response: tokens(Number(flags.response), 17),
  ...(flags.profile !== undefined && { profile: flags.profile }),
}

const file = (name: string) => fileURLToPath(new URL(`peers/${name}`, import.meta.url))
const SIDES = {
  ours: [process.execPath, '--import', 'tsx', file('grasp-step-child.ts')],
  peer: [flags.python, file('grasp_step.py')],
} as const
type Side = keyof typeof SIDES

const taken: Record<Side, StepNumbers[]> = { ours: [], peer: [] }
const sides: Side[] = flags.ours ? ['ours'] : ['ours', 'peer']
for (let round = 0; round < Number(flags.rounds); round++) {
  for (const side of sides) {
    const steps = await runPeer<StepNumbers>(SIDES[side], task)
    process.stderr.write(`${side}: ${steps.map(step => `${Math.round(total(step))} ms`).join(', ')}\n`)
    // The first steps touch memory for the first time.
    taken[side].push(...steps.slice(Math.min(2, steps.length - 1)))
  }
}

function total({ teacher, gradient, update }: StepNumbers): number {
  return teacher + gradient + update
}
function median(numbers: readonly number[]): number {
  const sorted = [...numbers].sort((a, b) => a - b)
  return (sorted[(sorted.length - 1) >> 1]! + sorted[sorted.length >> 1]!) / 2
}
function summary(steps: readonly StepNumbers[]) {
  const of = (pick: (step: StepNumbers) => number) => Math.round(median(steps.map(pick)))
  return {
    step: of(total),
    teacher: of(step => step.teacher),
    gradient: of(step => step.gradient),
    update: of(step => step.update),
    peak: Math.round(Math.max(...steps.map(step => step.peak))),
    loss: steps[0]!.loss,
  }
}
const result = Object.fromEntries(sides.map(side => [side, summary(taken[side])])) as Record<
  Side,
  ReturnType<typeof summary>
>
const ratios = flags.ours
  ? undefined
  : { speed: result.peer.step / result.ours.step, memory: result.ours.peak / result.peer.peak }

if (flags.json) {
  console.log(JSON.stringify({ ...flags, ...result, ratios }))
} else {
  console.table(result)
  if (ratios) {
    console.log(
      `speed ${ratios.speed.toFixed(2)} of PyTorch's, peak memory ${ratios.memory.toFixed(2)} of its`,
    )
  }
}
