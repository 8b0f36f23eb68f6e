import { TOPOLOGY } from '../../pipelines/topology.ts'
import type { CommonOptions, Session } from '../session.ts'
import { topologyMermaid, topologyText } from '../topology-text.ts'

export async function describe(
  session: Session,
  { format, json }: CommonOptions & { format: 'text' | 'json' | 'mermaid' },
): Promise<void> {
  const asJson = json || format === 'json'
  const text = format === 'mermaid' ? topologyMermaid(TOPOLOGY) : topologyText(TOPOLOGY)
  session.result(TOPOLOGY, asJson ? `${JSON.stringify(TOPOLOGY, null, 2)}\n` : text)
}
