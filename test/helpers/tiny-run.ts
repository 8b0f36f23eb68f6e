/** A run that takes seconds: a tiny random model, a few questions, and the real command line. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { writeTinyModel } from './tiny-model.ts'

const BINARY = fileURLToPath(new URL('../../bin/grasp.js', import.meta.url))

export interface TinyRun {
  readonly folder: string
  readonly config: string
  remove(): Promise<void>
}

export interface Outcome {
  readonly code: number | null
  readonly signal: NodeJS.Signals | null
  readonly stdout: string
  readonly stderr: string
}

const PROMPT = `## user

{{#passages}}
{{passages}}
{{/passages}}
{{#rubric}}
{{rubric}}
{{/rubric}}
{{question}}

## passage

- {{text}}

## aspect

* {{aspect}}
`

/** The sections that keep a run short; a test overrides them by `--set`. */
const CONFIG = `
run: tiny
model: { path: model, threads: 1 }
data: { train: train.jsonl, validation: validation.jsonl, test: test.jsonl }
prompt: prompt.md
judge: { kind: lexical }
validation: { tau: 0, maxNewTokens: 6, batch: 8 }
rollout: { maxNewTokens: 6 }
training: { batch: 4, learningRate: 0.003, checkpointEvery: 3 }
evaluation: { every: 4, maxNewTokens: 6, batch: 4 }
`

export function tinyItem(id: string, change: Record<string, unknown> = {}): Record<string, unknown> {
  return {
    id,
    question: `What about ${id}?`,
    narrative: 'The man is on the move.',
    category: ['Art_and_Entertainment', 'Society_and_Culture'][id.length % 2],
    profile: [
      { id: `${id}-1`, text: `the user and ${id} ran` },
      { id: `${id}-2`, text: 'a man sat on a hat' },
    ],
    rubric_aspects: [{ aspect: `the ${id} man`, reason: 'He ran.', evidence: 'ran' }],
    ...change,
  }
}

export async function makeTinyRun(trainItems = 24): Promise<TinyRun> {
  const folder = await mkdtemp(join(tmpdir(), 'grasp-tiny-run-'))
  await mkdir(join(folder, 'model'))
  await writeTinyModel(join(folder, 'model'), { contextLength: 256 })
  const lines = (prefix: string, count: number) =>
    Array.from({ length: count }, (_, i) => `${JSON.stringify(tinyItem(`${prefix}${i}`))}\n`).join('')
  await writeFile(join(folder, 'train.jsonl'), lines('t', trainItems))
  await writeFile(join(folder, 'validation.jsonl'), lines('v', 4))
  await writeFile(join(folder, 'test.jsonl'), lines('h', 6))
  await writeFile(join(folder, 'prompt.md'), PROMPT)
  const config = join(folder, 'grasp.yaml')
  await writeFile(config, CONFIG)
  return { folder, config, remove: () => rm(folder, { recursive: true, force: true }) }
}

export interface GraspOptions {
  readonly cwd: string
  /** Called with each chunk of stderr while the process runs; may kill it. */
  readonly watch?: (stderr: string, kill: (signal: NodeJS.Signals) => void) => void
}

/** Runs the command line as a user would, in a folder of its own. */
export async function grasp(args: readonly string[], { cwd, watch }: GraspOptions): Promise<Outcome> {
  const child = spawn(process.execPath, [BINARY, ...args], { cwd, stdio: ['ignore', 'pipe', 'pipe'] })
  let stdout = ''
  let stderr = ''
  child.stdout.setEncoding('utf8').on('data', text => {
    stdout += text
  })
  child.stderr.setEncoding('utf8').on('data', text => {
    stderr += text
    watch?.(stderr, signal => child.kill(signal))
  })
  const [code, signal] = (await once(child, 'close')) as [number | null, NodeJS.Signals | null]
  return { code, signal, stdout, stderr }
}

/** The result document of a run that must succeed. */
export async function runToEnd(run: TinyRun, where: string, settings: readonly string[] = []) {
  const sets = settings.flatMap(setting => ['--set', setting])
  const outcome = await grasp(['run', '--config', run.config, '--json', ...sets], {
    cwd: join(run.folder, where),
  })
  if (outcome.code !== 0) throw new Error(`grasp run ended with ${outcome.code}: ${outcome.stderr}`)
  return JSON.parse(outcome.stdout)
}
