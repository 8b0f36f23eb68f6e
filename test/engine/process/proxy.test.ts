import assert from 'node:assert/strict'
import { type ChildProcess, spawn } from 'node:child_process'
import { createInterface } from 'node:readline'
import { after, before, describe, it } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { openEngineProcess } from '../../../engine/process/proxy.ts'
import { canFindEngines, enginesOf, gone } from '../../helpers/engine-processes.ts'
import { makeTinyModel, type TinyModel } from '../../helpers/tiny-model.ts'
import { engineContract } from '../engine-contract.ts'

engineContract('the engine in a child process', openEngineProcess)

describe('the death of either process', { skip: !canFindEngines && 'reads /proc' }, () => {
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
  function launchParent(file = 'busy-parent.ts'): { parent: ChildProcess; line(): Promise<string> } {
    const program = fileURLToPath(new URL(file, import.meta.url))
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
    const [engine] = enginesOf(parent.pid!)
    return { parent, engine: engine!, line }
  }

  const sampling = { temperature: 1, topK: 0, topP: 1, minP: 0, stop: [], maxNewTokens: 250, seed: 1 }
  const prompts = ['a', 'b', 'c', 'd'].map(key => ({ key, ids: Int32Array.of(5) }))
  /** More than is sampled while a process dies. */
  const many = Array.from({ length: 1000 }, (_, i) => ({ key: `${i}`, ids: Int32Array.of(5) }))

  for (const [signal, how] of [
    ['SIGKILL', /was killed \(SIGKILL\).*memory.*while it sampled responses to 0, 1, 2 and 997 more\. Use/],
    ['SIGABRT', /gave up \(SIGABRT\), often for want of memory, while it sampled .*; its last words/],
    [
      'SIGSEGV',
      /died of SIGSEGV, a fault in native code, while it sampled responses to 0, 1, 2 and 997 more$/,
    ],
  ] as const) {
    it(`of the engine by ${signal}: calls under way and later ones fail, and say how it died and at what`, async () => {
      const engine = await openModel(model.path)
      const [pid] = enginesOf(process.pid)
      // It is to answer none of them before it dies.
      process.kill(pid!, 'SIGSTOP')
      const sampled = engine.generate(0, many, sampling)
      const quick = Promise.allSettled([engine.weightsHash(0), engine.decode(Int32Array.of(5))])
      process.kill(pid!, signal)
      process.kill(pid!, 'SIGCONT')
      const died = { code: 'ENGINE_DIED', message: how }
      await assert.rejects(sampled, died)
      for (const call of await quick) {
        // Node looks into a SIGSEGV before it dies of it, in whichever thread that reaches: others go on meanwhile.
        if (signal === 'SIGSEGV' && call.status === 'fulfilled') continue
        assert.equal(call.status, 'rejected')
        assert.match(call.reason.message, how)
      }
      await assert.rejects(engine.info(), died)
      await assert.rejects(engine.close(), died)
    })
  }

  it('of an engine that hangs: it is killed after the time it was given, also where it is stopped', async () => {
    const engine = await openEngineProcess(optionsOf(model.path), { hangSeconds: 2 })
    const [pid] = enginesOf(process.pid)
    process.kill(pid!, 'SIGSTOP')
    // Nobody waits for an idle engine.
    await sleep(3000)
    const hung = {
      code: 'ENGINE_DIED',
      message: /gave no sign of life for 2 s while it sampled .* and was killed.*raise engine\.hangSeconds/,
    }
    await assert.rejects(engine.generate(0, prompts, sampling), hung)
    await assert.rejects(engine.close(), hung)
    await gone(pid!)
  })

  it('not of one that works for longer than that: each graph is a sign of life', async () => {
    const engine = await openEngineProcess(optionsOf(model.path), { hangSeconds: 4 })
    // One call, of thousands of graphs, that takes longer than what is allowed between signs.
    for (let count = 200, took = 0; took < 6000; count *= 2) {
      const keys = Array.from({ length: count }, (_, i) => ({ key: `${i}`, ids: Int32Array.of(5) }))
      const began = performance.now()
      await engine.generate(0, keys, sampling)
      took = performance.now() - began
    }
    await engine.close()
  })

  it('by a signal while it loads the model', async () => {
    const controller = new AbortController()
    const opening = openEngineProcess(optionsOf(model.path), { signal: controller.signal })
    const [pid] = enginesOf(process.pid)
    controller.abort()
    await assert.rejects(opening, { code: 'INTERRUPTED', message: /while the model was loaded/ })
    await gone(pid!)
    const late = openEngineProcess(optionsOf(model.path), { signal: controller.signal })
    await assert.rejects(late, { code: 'INTERRUPTED' })
  })

  it('by its own decision before it is open: no second one would fare better', async () => {
    // The process reads its options from the environment when it starts.
    const before = process.env.NODE_OPTIONS
    process.env.NODE_OPTIONS = '--import=data:text/javascript,process.exit(3)'
    try {
      await assert.rejects(openModel(model.path), {
        code: 'ENGINE_FAILED',
        message: /ended with exit code 3 while it loaded the model .*last words are on standard error/,
      })
    } finally {
      if (before === undefined) delete process.env.NODE_OPTIONS
      else process.env.NODE_OPTIONS = before
    }
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

  it('of nobody: more than the channel takes is an error of its call', async () => {
    const engine = await openModel(model.path)
    const more = new Int32Array(2 ** 29)
    await assert.rejects(engine.decode(more), {
      code: 'ENGINE_FAILED',
      message: /^the call of decode holds 2\.0 GiB, .*scoring\.encoding/,
    })
    assert.equal((await engine.info()).device, 'cpu')
    await engine.close()
  })

  it('of the parent by kill -9: the engine ends by itself', async () => {
    const { parent, engine } = await startParent()
    parent.kill('SIGKILL')
    await gone(engine)
  })

  it('of the parent by kill -9 while the engine is only starting: the engine ends by itself', {
    timeout: 60_000,
  }, async () => {
    const { parent } = launchParent()
    while (enginesOf(parent.pid!).length === 0) await sleep(5)
    const [engine] = enginesOf(parent.pid!)
    // Its programs are being read.
    await sleep(100)
    parent.kill('SIGKILL')
    await gone(engine!)
  })

  it('of the parent by its own decision: an engine that hangs is taken along', async () => {
    const { line } = launchParent('leaving-parent.ts')
    await gone(Number(await line()))
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
    while (enginesOf(parent.pid!).length === 0) await sleep(5)
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
  return openEngineProcess(optionsOf(path))
}

function optionsOf(path: string) {
  return {
    path,
    device: 'cpu',
    threads: 1,
    keepPolicies: 0,
    tokensPerPass: 256,
    sequencesPerPass: 4,
  } as const
}
