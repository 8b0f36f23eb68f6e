/** Runs the real command in a process of its own. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { constants, tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

export const BIN = fileURLToPath(new URL('../../bin/grasp.js', import.meta.url))

export interface Ended {
  /** As shells tell it: 128 and the signal's number where one ended it. */
  readonly code: number
  readonly stdout: string
  readonly stderr: string
}

export interface Options {
  readonly cwd: string
  readonly input?: string
  /** Further arguments of node. */
  readonly node?: readonly string[]
}

export async function grasp(
  args: readonly string[],
  { cwd, input = '', node = [] }: Options,
): Promise<Ended> {
  const child = spawn(process.execPath, [...node, BIN, ...args], {
    cwd,
    env: { ...process.env, TERM: 'xterm' },
  })
  let [stdout, stderr] = ['', '']
  child.stdout.setEncoding('utf8').on('data', (text: string) => {
    stdout += text
  })
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    stderr += text
  })
  child.stdin.end(input)
  const [code, signal] = (await once(child, 'close')) as [number | null, NodeJS.Signals | null]
  return { code: code ?? 128 + constants.signals[signal!], stdout, stderr }
}

/** A folder of its own for a test, with files in it. */
export class Workspace implements Disposable {
  readonly path = mkdtempSync(join(tmpdir(), 'grasp-cli-'))

  write(name: string, content: string | object): string {
    const file = join(this.path, name)
    writeFileSync(file, typeof content === 'string' ? content : JSON.stringify(content))
    return file
  }

  grasp(...args: string[]): Promise<Ended> {
    return grasp(args, { cwd: this.path })
  }

  [Symbol.dispose](): void {
    rmSync(this.path, { recursive: true, force: true })
  }
}

/** A data item in LaMP-QA's format. */
export function item(id: string, changes: object = {}): object {
  return {
    id,
    question: 'Which tea should I try?',
    narrative: '',
    category: 'Lifestyle',
    profile: [{ id: 'p', text: 'I avoid caffeine.' }],
    rubric_aspects: [{ aspect: 'caffeine-free', reason: '', evidence: '' }],
    ...changes,
  }
}

/** A configuration whose data is `train.json`; its model and prompt are not there. */
export const CONFIG =
  'run: t\nmodel: { path: model }\ndata: { train: train.json }\njudge: { kind: lexical }\n'
