/**
 * Times the parts of a step on a device: `node --import tsx bench/device-step.ts MODEL [cpu|webgpu|cuda]`.
 * Environment: RESPONSES (8), PROMPT (128), RESPONSE (64), STEPS (3), THREADS (2). The first step is not counted: a
 * device builds its kernels in it.
 */
import { openLocalEngine } from '../engine/local-engine.ts'
import type { DeviceKind, TrainItem } from '../engine/port.ts'

const [path, device = 'cpu'] = process.argv.slice(2)
const number = (variable: string, otherwise: number) => Number(process.env[variable] ?? otherwise)
const [responses, prompt, length] = [number('RESPONSES', 8), number('PROMPT', 128), number('RESPONSE', 64)]
const engine = await openLocalEngine({
  path: path!,
  device: device as DeviceKind,
  threads: number('THREADS', 2),
  keepPolicies: 0,
  tokensPerPass: 2048,
  sequencesPerPass: 16,
})
const { vocabularySize, parameters } = await engine.info()
const ids = (count: number, from: number) =>
  Int32Array.from({ length: count }, (_, i) => (from * 7919 + i * 104729 + 11) % vocabularySize)
const prompts = Array.from({ length: responses }, (_, i) => ({ key: `${i}`, ids: ids(prompt, i) }))
const sampling = { temperature: 1, topK: 0, topP: 1, minP: 0, stop: [], maxNewTokens: length, seed: 1 }
console.log(
  `${device}: ${parameters} parameters, ${responses} prompts of ${prompt}, responses of up to ${length}`,
)
for (let step = 0; step <= number('STEPS', 3); step++) {
  const times: string[] = []
  const timed = async <T>(what: string, run: () => Promise<T>): Promise<T> => {
    const start = performance.now()
    const result = await run()
    times.push(`${what} ${(performance.now() - start).toFixed(0)} ms`)
    return result
  }
  const policy = await engine.policyVersion()
  const generations = await timed('generate', () => engine.generate(policy, prompts, sampling))
  const items = generations.map(({ ids: response }, i) => ({
    studentPrompt: prompts[i]!.ids,
    teacherPrompt: Int32Array.from([...prompts[i]!.ids, ...ids(32, i)]),
    response,
  }))
  const options = { policyVersion: policy, encoding: 'factored', dtype: 'f32' } as const
  const scored = await timed('score', () => engine.score(items, options))
  const lessons: TrainItem[] = items.map(({ studentPrompt, response }, i) => ({
    loss: 'forward-kl',
    prompt: studentPrompt,
    response,
    teacher: scored[i]!.teacher,
  }))
  const { tokens } = await timed('gradient', () => engine.accumulate(lessons))
  const update = { learningRate: 1e-5, betas: [0.9, 0.99], epsilon: 1e-8, weightDecay: 0.1, clip: 1 } as const
  const { weightsHash } = await timed('update', () => engine.update({ ...update, responses }))
  const rss = (process.memoryUsage.rss() / 2 ** 20).toFixed(0)
  const which = step === 0 ? 'first, not counted' : `step ${step}`
  console.log(
    `${which}: ${times.join(', ')}; ${tokens} tokens, ${rss} MiB, weights ${weightsHash.slice(0, 8)}`,
  )
}
await engine.close()
