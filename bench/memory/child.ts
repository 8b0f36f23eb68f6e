/** Steps of an engine in a process of its own, with the greatest resident memory so far: started by bench/memory.ts. */
import { openLocalEngine } from '../../engine/local-engine.ts'
import type { TrainItem } from '../../engine/port.ts'
import { readStandardInput } from '../peers/run-peer.ts'
import type { MemoryTask } from './task.ts'

const task: MemoryTask = JSON.parse(await readStandardInput())
const { engine: options, rows, prompt, response, newTokens, steps, train } = task
const engine = await openLocalEngine(options)
const { vocabularySize } = await engine.info()

function tell(what: string): void {
  process.stdout.write(`${JSON.stringify({ what, bytes: process.resourceUsage().maxRSS * 1024 })}\n`)
}

/** Tokens that mean nothing, but differ. */
function ids(count: number, salt: number): Int32Array {
  return Int32Array.from({ length: count }, (_, i) => (salt + 7919 * i + 104_729 * i * i) % vocabularySize)
}

tell('load')
for (let step = 0; step < steps; step++) {
  const prompts = Array.from({ length: options.sequencesPerPass }, (_, row) => ({
    key: `prompt ${row}`,
    // What is sampled fills the cache like what is trained on.
    ids: ids(prompt + response - newTokens, 11 + row),
  }))
  const sampling = { temperature: 1, topK: 0, topP: 1, minP: 0, maxNewTokens: newTokens, stop: [], seed: 1 }
  await engine.generate(train ? step : 0, prompts, sampling)
  tell('generate')
  if (!train) continue
  const items = Array.from({ length: rows }, (_, row) => ({
    studentPrompt: ids(prompt, 11 + row),
    teacherPrompt: ids(prompt, 13 + row),
    response: ids(response, 17 + row),
  }))
  const scored = await engine.score(items, { policyVersion: step, encoding: 'factored', dtype: 'f32' })
  tell('score')
  await engine.accumulate(
    items.map(
      ({ studentPrompt, response }, row): TrainItem => ({
        loss: 'forward-kl',
        prompt: studentPrompt,
        response,
        teacher: scored[row]!.teacher,
      }),
    ),
  )
  tell('accumulate')
  await engine.update({
    responses: rows,
    learningRate: 1e-6,
    betas: [0.9, 0.999],
    epsilon: 1e-8,
    weightDecay: 0.01,
    clip: 1,
  })
  tell('update')
}
await engine.close()
