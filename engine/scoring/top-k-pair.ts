/** Both sides' k greatest logits a token, and what leaving out the others does to the KL. */
import type { Scorer } from '../backend.ts'
import type { Distributions, Dtype, Scored } from '../port.ts'
import { encode, rounded } from './encode.ts'
import type { ScoredSide } from './side.ts'
import { topK } from './top-k.ts'
import { truncatedKl } from './truncation.ts'

/** Most elements of a chunk's logits [tokens, V]: memory must not grow with the response. */
const CHUNK_ELEMENTS = 2 ** 22

/** @param kl [T] of the whole distributions, nats. @param k at most V. */
export async function topKPair(
  scorer: Scorer,
  student: ScoredSide,
  teacher: ScoredSide,
  kl: Float32Array,
  { k, dtype }: { readonly k: number; readonly dtype: Dtype },
): Promise<Omit<Scored, 'kl'>> {
  const [V, D] = teacher.side.head.dims as [number, number]
  const studentRows = new TopRows(kl.length, k)
  const teacherRows = new TopRows(kl.length, k)
  const chunk = Math.max(1, Math.floor(CHUNK_ELEMENTS / V))
  let error = 0
  for (let from = 0; from < kl.length; from += chunk) {
    const to = Math.min(kl.length, from + chunk)
    const logitsOf = ({ hidden, side }: ScoredSide) =>
      scorer.logits({ hidden: hidden.subarray(from * D, to * D), head: side.head })
    const studentLogits = await logitsOf(student)
    const teacherLogits = await logitsOf(teacher)
    for (let t = from; t < to; t++) {
      const row = (logits: Float32Array) => logits.subarray((t - from) * V, (t - from + 1) * V)
      studentRows.take(t, row(studentLogits))
      const ids = teacherRows.take(t, row(teacherLogits))
      const approximate = truncatedKl({
        teacherLogits: rounded(pick(row(teacherLogits), ids), dtype),
        teacherLse: teacher.numbers.lse[t]!,
        studentLogits: pick(row(studentLogits), ids),
        studentLse: student.numbers.lse[t]!,
      })
      error += Math.abs(approximate - kl[t]!)
    }
  }
  return {
    student: studentRows.distributions(dtype, student),
    teacher: teacherRows.distributions(dtype, teacher),
    truncation: kl.length === 0 ? 0 : error / kl.length,
  }
}

class TopRows {
  readonly #k: number
  readonly #ids: Uint32Array
  readonly #logits: Float32Array

  constructor(tokens: number, k: number) {
    this.#k = k
    this.#ids = new Uint32Array(tokens * k)
    this.#logits = new Float32Array(tokens * k)
  }

  /** Takes token t's greatest logits from its row [V] and gives their ids. */
  take(t: number, row: Float32Array): Uint32Array {
    const ids = topK(row, this.#k)
    this.#ids.set(ids, t * this.#k)
    this.#logits.set(pick(row, ids), t * this.#k)
    return ids
  }

  distributions(dtype: Dtype, { numbers }: ScoredSide): Distributions {
    return {
      encoding: 'topk',
      dtype,
      width: this.#k,
      data: encode(this.#logits, dtype),
      ids: new Uint8Array(this.#ids.buffer),
      ...numbers,
    }
  }
}

function pick(row: Float32Array, ids: Uint32Array): Float32Array {
  return Float32Array.from(ids, id => row[id]!)
}
