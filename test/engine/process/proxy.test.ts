import assert from 'node:assert/strict'
import { type ChildProcess, spawn } from 'node:child_process'
import { readdir, readFile } from 'node:fs/promises'
import { createInterface } from 'node:readline'
import { after, before, describe, it } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { openEngineProcess } from '../../../engine/process/proxy.ts'
import { makeTinyModel, type TinyModel } from '../../helpers/tiny-model.ts'
import { engineContract } from '../engine-contract.ts'

engineContract('the engine in a child process', openEngineProcess)

const linux = process.platform === 'linux'

describe('the death of either process', { skip: !linux && 'reads /proc' }, () => {
  let model: TinyModel
  const running: ChildProcess[] = []
  before(async () => {
    model = await makeTinyModel()
  })
  after(async () => {
    for (const parent of running) parent.kill('SIGKILL')
    await model.remove()
  })

  /** A program that opens an engine, says so, and keeps it busy until it is told to stop. */
  function launchParent(): { parent: ChildProcess; line(): Promise<string> } {
    const program = fileURLToPath(new URL('./busy-parent.ts', import.meta.url))
    const parent = spawn(process.execPath, ['--import', import.meta.resolve('tsx'), program, model.path], {
      stdio: ['ignore', 'pipe', 'inherit'],
      // A process group of its own, so that a signal can reach it and what belongs to it as Ctrl-C does.
      detached: true,
    })
    running.push(parent)
    const lines = createInterface({ input: parent.stdout! })[Symbol.asyncIterator]()
    return { parent, line: async () => (await lines.next()).value as string }
  }

  async function startParent() {
    const { parent, line } = launchParent()
    assert.equal(await line(), 'open')
    const [engine] = await childrenOf(parent.pid!)
    return { parent, engine: engine!, line }
  }

  it('of the engine: calls under way and later ones fail, and say how it died', async () => {
    const engine = await openModel(model.path)
    const [pid] = await childrenOf(process.pid)
    const pending = engine.generate(0, [{ key: 'a', ids: Int32Array.of(5) }], {
      temperature: 1,
      topK: 0,
      topP: 1,
      minP: 0,
      stop: [],
      maxNewTokens: 250,
      seed: 1,
    })
    process.kill(pid!, 'SIGKILL')
    const killed = { code: 'ENGINE_FAILED', message: /killed \(SIGKILL\).*memory.*Lower tokensPerPass/ }
    await assert.rejects(pending, killed)
    await assert.rejects(engine.info(), killed)
    await assert.rejects(engine.close(), killed)
  })

  it('of nobody: an argument that cannot be sent is an error of its call', async () => {
    const engine = await openModel(model.path)
    await assert.rejects(
      engine.saveCheckpoint('x', () => {}),
      { code: 'ENGINE_FAILED', message: /could not be cloned/ },
    )
    assert.equal(await engine.policyVersion(), 0)
    await engine.close()
  })

  it('of the parent by kill -9: the engine ends by itself', async () => {
    const { parent, engine } = await startParent()
    parent.kill('SIGKILL')
    await gone(engine)
  })

  it('by Ctrl-C: the engine goes on until the parent is done', async () => {
    const { parent, engine, line } = await startParent()
    process.kill(-parent.pid!, 'SIGINT')
    assert.equal(await line(), 'interrupted')
    // The parent answers a Ctrl-C with one more call, and closes.
    assert.equal(await line(), 'answered')
    assert.equal(await line(), 'closed')
    await gone(engine)
  })

  it('by Ctrl-C while the engine is only starting: it starts, and the parent decides', async () => {
    const { parent, line } = launchParent()
    while ((await childrenOf(parent.pid!)).length === 0) await sleep(5)
    process.kill(-parent.pid!, 'SIGINT')
    assert.equal(await line(), 'open')
    assert.equal(await line(), 'interrupted')
  })
})

it('an open engine that nobody waits for does not keep its parent alive', async () => {
  const model = await makeTinyModel()
  const program = fileURLToPath(new URL('./idle-parent.ts', import.meta.url))
  const parent = spawn(process.execPath, ['--import', import.meta.resolve('tsx'), program, model.path], {
    stdio: 'inherit',
  })
  const [code] = await new Promise<[number | null, string | null]>(resolve =>
    parent.once('exit', (exit, signal) => resolve([exit, signal])),
  )
  await model.remove()
  assert.equal(code, 0)
})

function openModel(path: string) {
  return openEngineProcess({
    path,
    device: 'cpu',
    threads: 1,
    keepPolicies: 0,
    tokensPerPass: 256,
    sequencesPerPass: 4,
  })
}

/** Process ids of the children that are engines. */
async function childrenOf(parent: number): Promise<number[]> {
  const found: number[] = []
  for (const entry of await readdir('/proc')) {
    if (!/^\d+$/.test(entry)) continue
    const [stat, command] = await Promise.all(
      ['stat', 'cmdline'].map(file => readFile(`/proc/${entry}/${file}`, 'utf8').catch(() => '')),
    )
    const ppid = Number(stat!.slice(stat!.lastIndexOf(')') + 2).split(' ')[1])
    if (ppid === parent && command!.includes('engine/process/host')) found.push(Number(entry))
  }
  return found
}

/** Waits for a process to end; the test's timeout is the limit. */
async function gone(pid: number): Promise<void> {
  for (;;) {
    const stat = await readFile(`/proc/${pid}/stat`, 'utf8').catch(() => '')
    // A zombie has ended; only its parent has not asked.
    if (stat === '' || stat.slice(stat.lastIndexOf(')') + 2)[0] === 'Z') return
    await sleep(20)
  }
}
