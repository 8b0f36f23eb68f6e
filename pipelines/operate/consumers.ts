/** Which stages read their topic as a consumer group, and what lies downstream of a topic. */
import type { Topic } from '../../schemas/types.ts'
import { type StageDescription, type StageName, TOPOLOGY } from '../topology.ts'

/** Why a stage has no position in the log that could lag or be set. */
const WITHOUT_POSITION: Partial<Record<StageName, string>> = {
  ingest: 'it reads files, and leaves out what questions and deadletters already hold',
  evaluation: 'it keeps no position: it asks for what evaluations does not hold yet',
}

export type Consumer =
  | { readonly stage: StageName; readonly topic: Topic; readonly group: string; readonly why?: undefined }
  | { readonly stage: StageName; readonly topic: Topic | null; readonly group: null; readonly why: string }

/** Every stage, in the order of the pipeline. A group is named after its stage. */
export const CONSUMERS: readonly Consumer[] = TOPOLOGY.map(({ stage, reads }): Consumer => {
  const why = WITHOUT_POSITION[stage]
  if (reads === null || why !== undefined) return { stage, topic: reads, group: null, why: why ?? '' }
  return { stage, topic: reads, group: stage }
})

export interface Downstream {
  /** Stages that get to see the records, directly or through others. */
  readonly stages: readonly StageName[]
  /** Topics that these stages write. */
  readonly topics: readonly Topic[]
}

/** What a record that is written to a topic leads to. */
export function downstreamOf(topic: Topic): Downstream {
  const reached = new Set<Topic>([topic])
  const stages: StageName[] = []
  const topics: Topic[] = []
  // The topology stands in the order of the pipeline, so one walk reaches everything.
  for (const { stage, reads, writes } of TOPOLOGY as readonly StageDescription[]) {
    if (reads === null || !reached.has(reads)) continue
    stages.push(stage)
    for (const written of writes) {
      reached.add(written)
      topics.push(written)
    }
  }
  return { stages, topics }
}
