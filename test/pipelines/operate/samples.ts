/** Records of a run for tests that operate it. */
import { type Output, output } from '../../../bus/port.ts'
import { batchKey } from '../../../operators/batch-key.ts'
import type { Validation } from '../../../schemas/types.ts'
import { contextRecord } from '../../helpers/records.ts'

const SAMPLING = { temperature: 1, topK: 0, topP: 1, minP: 0, stop: [], maxNewTokens: 8, seed: 1 }

export const context = (id: string, split = 'train'): Output =>
  output('contexts', id, contextRecord(id, { split }))

export function validationRecord(id: string, change: Partial<Validation> = {}): Validation {
  return {
    context: contextRecord(id),
    response: 'Walk.',
    responseTokens: [1],
    finish: 'stop',
    verdicts: [
      { aspect: 'short', score: 2, unscored: null },
      { aspect: 'quiet', score: 1, unscored: null },
    ],
    score: 0.75,
    accepted: true,
    tau: 0.5,
    sampling: SAMPLING,
    judge: 'j',
    prompt: 'p',
    teacher: 't',
    ...change,
  }
}

export const validation = (id: string, change: Partial<Validation> = {}): Output =>
  output('validations', id, validationRecord(id, change))

/** The instances of a batch. */
export const batchOf = (number: number, ...ids: string[]): Output[] =>
  ids.map((id, index) =>
    output('instances', batchKey({ number, size: ids.length }), {
      context: contextRecord(id),
      score: 1,
      tau: 1,
      epoch: 0,
      batch: { number, index, size: ids.length },
    }),
  )

export const update = (batch: number): Output =>
  output('updates', String(batch + 1), {
    version: batch + 1,
    batch,
    rolloutVersion: batch,
    instances: [],
    consumed: [],
    responses: 1,
    tokens: 1,
    loss: 0,
    kl: 0,
    gradientNorm: 0,
    learningRate: 0,
    weightsHash: '',
    milliseconds: 0,
  })
