import { mergeMap } from 'rxjs'
import { deadLetter } from '../bus/dead-letter.ts'
import { output } from '../bus/port.ts'
import { isPerRecord } from '../errors/grasp-error.ts'
import type { Retriever } from '../retrievers/port.ts'
import type { StageOperator } from './stage.ts'

export interface RetrieveOptions {
  readonly retriever: Retriever
  /** How many posts a question gets, best first. */
  readonly topK: number
  /** How many questions are looked up side by side. */
  readonly concurrency: number
}

/** questions → contexts: the top-k posts of the asker's profile for the question. */
export function retrieve({ retriever, topK, concurrency }: RetrieveOptions): StageOperator<'questions'> {
  return mergeMap(async record => {
    const { id, user, split, category, question, narrative, aspects, profile } = record.value
    try {
      const passages = await retriever.retrieve({ question, narrative }, profile, topK)
      return {
        consumed: [record],
        outputs: [
          output('contexts', id, {
            id,
            user,
            split,
            category,
            question,
            narrative,
            aspects,
            passages,
            profileSize: profile.length,
            retriever: retriever.hash,
          }),
        ],
      }
    } catch (error) {
      if (!isPerRecord(error)) throw error
      return { consumed: [record], outputs: [deadLetter(record, { stage: 'retrieval', error })] }
    }
  }, concurrency)
}
