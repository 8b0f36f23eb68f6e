/** One GRASP step by this engine, in a process of its own: started by bench/grasp-step.ts, which says how. */
import { Learner } from '../../engine/learner/learner.ts'
import { initialState } from '../../engine/optimiser/adamw.ts'
import { encode } from '../../engine/scoring/encode.ts'
import { loadModelDirectory } from '../../engine/weights/model-directory.ts'
import { headName } from '../../engine/weights/parameter-shapes.ts'
import { readStandardInput } from './run-peer.ts'
import type { StepTask } from './step-task.ts'

const task: StepTask = JSON.parse(await readStandardInput())
const { config, weights: initial } = await loadModelDirectory(task.model)
const learner = await Learner.create(config, {
  threads: task.threads,
  tokensPerPass: 4096,
  ...(task.profile !== undefined && { profile: task.profile }),
})
const head = initial.get(headName(config))!
const [prompt, response] = [Int32Array.from(task.studentPrompt), Int32Array.from(task.response)]
const scoredIds = Int32Array.from([...task.teacherPrompt, ...task.response.slice(0, -1)])
const state = initialState(initial)
let weights = initial
for (let step = 0; step < task.steps; step++) {
  const start = performance.now()
  const sequence = { ids: scoredIds, from: task.teacherPrompt.length - 1, count: response.length }
  const [hidden] = await learner.hiddenStates(initial, [sequence])
  const teacher = {
    encoding: 'factored',
    dtype: 'f32',
    width: config.hiddenSize,
    data: encode(hidden!, 'f32'),
    lse: new Float32Array(0),
    logp: new Float32Array(0),
  } as const
  const scored = performance.now()
  const { losses } = await learner.accumulate(weights, head, [
    { loss: 'forward-kl', prompt, response, teacher },
  ])
  const learned = performance.now()
  const options = {
    responses: 1,
    learningRate: 1e-6,
    betas: [0.9, 0.999],
    epsilon: 1e-8,
    weightDecay: 0.01,
    clip: 1,
  } as const
  // In place, as the engine does where no older version is kept, and as the peer does; the first are the teacher's.
  const own = weights === initial ? undefined : weights
  const into = (name: string) => own?.get(name)?.data as Float32Array | undefined
  const updated = await learner.update(weights, state, options, undefined, into)
  weights = updated.weights
  const end = performance.now()
  const numbers = {
    loss: losses[0],
    norm: updated.gradientNorm,
    teacher: scored - start,
    gradient: learned - scored,
    update: end - learned,
    peak: process.resourceUsage().maxRSS / 1024,
  }
  process.stdout.write(`${JSON.stringify(numbers)}\n`)
}
await learner.close()
