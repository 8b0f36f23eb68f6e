import assert from 'node:assert/strict'
import { test } from 'node:test'
import { openCpuBackend } from '../../engine/cpu-backend.ts'
import type { OpenBackend } from '../../engine/local-engine.ts'
import { openLocalEngine } from '../../engine/local-engine.ts'
import type { Engine } from '../../engine/port.ts'
import { makeTinyModel } from '../helpers/tiny-model.ts'
import { engineContract } from './engine-contract.ts'

engineContract('the engine in this process', openLocalEngine)

test('an interrupt ends sampling before the next pass through the model', async () => {
  const model = await makeTinyModel()
  const drawn: number[] = []
  /** Passes whose results nobody wanted. */
  let after = 0
  let engine: Engine | undefined
  /** The CPU, which is interrupted after the third token of a response was drawn. */
  const open: OpenBackend = async (config, options) => {
    const backend = await openCpuBackend(config, options)
    const generate: typeof backend.generate = (weights, requests, sampling, check) => {
      const watched = requests.map(request => ({
        ...request,
        random: (index: number) => {
          const number = request.random(index)
          drawn.push(index)
          if (index === 2) engine!.interrupt()
          return number
        },
      }))
      return backend.generate(weights, watched, sampling, () => {
        check()
        if (drawn.length > 2) after++
      })
    }
    return new Proxy(backend, {
      get: (of, name) => {
        if (name === 'generate') return generate
        const value = Reflect.get(of, name)
        return typeof value === 'function' ? value.bind(of) : value
      },
    })
  }
  const limits = { threads: 1, keepPolicies: 0, tokensPerPass: 512, sequencesPerPass: 8 }
  engine = await openLocalEngine({ path: model.path, device: 'cpu', ...limits }, open)
  try {
    const sampling = { temperature: 1, topK: 0, topP: 1, minP: 0, stop: [], maxNewTokens: 100, seed: 1 }
    const prompts = [{ key: 'a', ids: Int32Array.of(5) }]
    await assert.rejects(engine.generate(0, prompts, sampling), { code: 'INTERRUPTED' })
    assert.deepEqual([drawn, after], [[0, 1, 2], 0])
  } finally {
    await engine.close()
    await model.remove()
  }
})
