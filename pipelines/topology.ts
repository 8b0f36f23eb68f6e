/** The stages and the topics between them: what `grasp describe` shows, and what the documentation is checked against. */
import type { Topic } from '../schemas/types.ts'

export type StageName =
  | 'ingest'
  | 'retrieval'
  | 'validation'
  | 'filtering'
  | 'rollout'
  | 'scoring'
  | 'training'
  | 'evaluation'

export interface StageDescription {
  readonly stage: StageName
  /** Null where the stage reads files. */
  readonly reads: Topic | null
  readonly writes: readonly Topic[]
  readonly what: string
}

export const TOPOLOGY: readonly StageDescription[] = [
  {
    stage: 'ingest',
    reads: null,
    writes: ['questions'],
    what: 'reads questions, profiles and rubrics from files',
  },
  {
    stage: 'retrieval',
    reads: 'questions',
    writes: ['contexts'],
    what: "finds the asker's posts that fit the question",
  },
  {
    stage: 'validation',
    reads: 'contexts',
    writes: ['validations'],
    what: 'the teacher, which sees the rubric, answers; the judge scores the answer for each aspect',
  },
  {
    stage: 'filtering',
    reads: 'validations',
    writes: ['instances'],
    what: 'keeps the questions with s_T ≥ τ',
  },
  { stage: 'rollout', reads: 'instances', writes: ['rollouts'], what: 'the student answers on-policy' },
  {
    stage: 'scoring',
    reads: 'rollouts',
    writes: ['slices'],
    what: 'student and teacher predict every token of that answer',
  },
  {
    stage: 'training',
    reads: 'slices',
    writes: ['updates', 'policies'],
    what: 'accumulates the gradient of the forward KL, updates the student, checkpoints',
  },
  {
    stage: 'evaluation',
    reads: 'contexts',
    writes: ['evaluations'],
    what: 'judges held-out answers of student, teacher and trained policy',
  },
]

export function stageDescription(stage: StageName): StageDescription {
  return TOPOLOGY.find(entry => entry.stage === stage)!
}
