import { retrieve } from '../operators/retrieve.ts'
import type { RetrievalContext } from './context.ts'
import { runStage } from './stage.ts'

export function retrieval(context: RetrievalContext) {
  const { config, retriever } = context
  return runStage(context, 'retrieval', 'questions', {
    work: flow => flow.records$.pipe(retrieve({ retriever, topK: config.retrieval.topK, concurrency: 16 })),
    seals: ['contexts'],
  })
}
