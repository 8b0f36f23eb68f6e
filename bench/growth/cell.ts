/** One cell of bench/growth.ts: steps of a model of given size on given lengths, by us and, where asked, by PyTorch. */
import { execFile } from 'node:child_process'
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { runPeer } from '../peers/run-peer.ts'
import type { StepNumbers, StepTask } from '../peers/step-task.ts'

export interface Cell {
  readonly layers: number
  readonly vocabulary: number
  readonly prompt: number
  readonly response: number
}

export interface CellOptions {
  /** Where random models are kept. */
  readonly folder: string
  readonly threads: number
  readonly steps: number
  /** None: ours alone. */
  readonly python?: string | undefined
}

interface Numbers {
  /** The fastest step after the first, which touches memory for the first time. */
  readonly milliseconds: number
  /** Peak resident memory of the process, MiB. */
  readonly peak: number
}

export interface Measured {
  readonly ours: Numbers
  readonly peer?: Numbers | undefined
}

const file = (name: string) => fileURLToPath(new URL(name, import.meta.url))

export async function measureCell(cell: Cell, options: CellOptions): Promise<Measured> {
  const { vocabulary, prompt, response } = cell
  const ids = (count: number, salt: number) =>
    Array.from({ length: count }, (_, i) => (salt + 7919 * i + 104_729 * i * i) % vocabulary)
  const task: StepTask = {
    model: await randomModel(cell, options.folder),
    threads: options.threads,
    steps: options.steps,
    studentPrompt: ids(prompt, 11),
    teacherPrompt: ids(prompt, 13),
    response: ids(response, 17),
  }
  const ours = [process.execPath, '--import', 'tsx', file('../peers/grasp-step-child.ts')] as const
  return {
    ours: summary(await runPeer<StepNumbers>(ours, task)),
    peer:
      options.python === undefined
        ? undefined
        : summary(await runPeer<StepNumbers>([options.python, file('../peers/grasp_step.py')], task)),
  }
}

async function randomModel({ layers, vocabulary }: Cell, parent: string): Promise<string> {
  const folder = join(parent, `layers-${layers}-vocabulary-${vocabulary}`)
  if (existsSync(folder)) return folder
  await promisify(execFile)(process.execPath, [
    '--import',
    'tsx',
    file('random-model.ts'),
    folder,
    String(layers),
    String(vocabulary),
  ])
  return folder
}

function summary(steps: readonly StepNumbers[]): Numbers {
  const later = steps.slice(steps.length > 1 ? 1 : 0)
  return {
    milliseconds: Math.round(
      Math.min(...later.map(({ teacher, gradient, update }) => teacher + gradient + update)),
    ),
    peak: Math.round(Math.max(...steps.map(({ peak }) => peak))),
  }
}
