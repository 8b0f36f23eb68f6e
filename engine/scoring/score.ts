/**
 * The paired distributions of student and teacher over responses. Row t of everything is about response token
 * t: hidden state `prompt + t − 1` predicts it. Shape suffixes: T response tokens, D hidden size, V vocabulary.
 */
import { GraspError } from '../../errors/grasp-error.ts'
import type { Scorer } from '../backend.ts'
import type { TokenNumbers } from '../learner/head.ts'
import { responseSequence } from '../learner/work.ts'
import type { Distributions, Scored, ScoreItem, ScoreOptions } from '../port.ts'
import { encode } from './encode.ts'
import type { ScoredSide, Side } from './side.ts'
import { topKPair } from './top-k-pair.ts'

/**
 * Log-sum-exps, log-probabilities and KL are those of the f32 logits, whatever the distributions are rounded to.
 * @returns one for each item, in order
 * @throws GraspError PROMPT_TOO_LONG, RECORD_INVALID; CONFIG_INVALID when k is not in 1 … V.
 */
export async function score(
  scorer: Scorer,
  student: Side,
  teacher: Side,
  items: readonly ScoreItem[],
  options: ScoreOptions,
): Promise<Scored[]> {
  checkK(options, teacher)
  const hiddenOf = (side: Side, prompt: 'studentPrompt' | 'teacherPrompt') =>
    scorer.hiddenStates(
      side.weights,
      items.map(item => responseSequence(item[prompt], item.response)),
    )
  const studentHidden = await hiddenOf(student, 'studentPrompt')
  const teacherHidden = await hiddenOf(teacher, 'teacherPrompt')
  // One pass through the head for all items: short responses would leave its chunks half empty.
  const numbers = await scorer.numbers(
    { hidden: concat(studentHidden), head: student.head },
    { hidden: concat(teacherHidden), head: teacher.head },
    Int32Array.from(items.flatMap(({ response }) => Array.from(response))),
  )
  const scored: Scored[] = []
  let start = 0
  for (const [index, { response }] of items.entries()) {
    const end = start + response.length
    const of = (name: keyof TokenNumbers) => numbers[name].slice(start, end)
    const studentSide = {
      side: student,
      hidden: studentHidden[index]!,
      numbers: { lse: of('studentLse'), logp: of('studentLogp') },
    }
    const teacherSide = {
      side: teacher,
      hidden: teacherHidden[index]!,
      numbers: { lse: of('teacherLse'), logp: of('teacherLogp') },
    }
    const kl = of('kl')
    scored.push({ ...(await encodePair(scorer, studentSide, teacherSide, kl, options)), kl })
    start = end
  }
  return scored
}

async function encodePair(
  scorer: Scorer,
  student: ScoredSide,
  teacher: ScoredSide,
  kl: Float32Array,
  options: ScoreOptions,
): Promise<Omit<Scored, 'kl'>> {
  if (!options.numbersOnly && options.encoding === 'topk') {
    return topKPair(scorer, student, teacher, kl, { k: options.k!, dtype: options.dtype })
  }
  return {
    student: await distributionsOf(scorer, student, options),
    teacher: await distributionsOf(scorer, teacher, options),
  }
}

async function distributionsOf(
  scorer: Scorer,
  { side, hidden, numbers }: ScoredSide,
  { encoding, dtype, numbersOnly }: ScoreOptions,
): Promise<Distributions> {
  const [V, D] = side.head.dims as [number, number]
  if (numbersOnly) return { encoding, dtype, width: 0, data: new Uint8Array(0), ...numbers }
  if (encoding === 'factored') {
    return { encoding, dtype, width: D, data: encode(hidden, dtype), head: side.headHash, ...numbers }
  }
  const logits_TV = await scorer.logits({ hidden, head: side.head })
  return { encoding, dtype, width: V, data: encode(logits_TV, dtype), ...numbers }
}

function checkK({ encoding, numbersOnly, k }: ScoreOptions, { head }: Side): void {
  if (encoding !== 'topk' || numbersOnly) return
  const V = head.dims[0]!
  if (k !== undefined && Number.isInteger(k) && k >= 1 && k <= V) return
  throw new GraspError('CONFIG_INVALID', `topk slices need k from 1 to the vocabulary's ${V}, not ${k}`)
}

function concat(parts: readonly Float32Array[]): Float32Array {
  const whole = new Float32Array(parts.reduce((sum, part) => sum + part.length, 0))
  let position = 0
  for (const part of parts) {
    whole.set(part, position)
    position += part.length
  }
  return whole
}
