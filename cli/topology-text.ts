/** The topology for people: a table, or a Mermaid flowchart. */
import type { StageDescription } from '../pipelines/topology.ts'
import { table } from './table.ts'

export function topologyText(topology: readonly StageDescription[]): string {
  const rows = topology.map(({ stage, reads, writes, what }) => [
    stage,
    reads ?? '(files)',
    writes.join(', '),
    what,
  ])
  return (
    `${table([['stage', 'reads', 'writes', ''], ...rows])}\n` +
    'Any stage also writes deadletters: records that it could not process, and why.\n'
  )
}

/** Stages as boxes, topics as cylinders. */
export function topologyMermaid(topology: readonly StageDescription[]): string {
  const lines = ['flowchart LR', '  files[/data files/]']
  const topics = new Set(topology.flatMap(({ reads, writes }) => [...(reads ? [reads] : []), ...writes]))
  for (const topic of topics) lines.push(`  ${topic}[(${topic})]`)
  for (const { stage, reads, writes } of topology) {
    // A stage may bear a topic's name's stem, so its node gets a name of its own.
    lines.push(`  stage_${stage}[${stage}]`, `  ${reads ?? 'files'} --> stage_${stage}`)
    for (const topic of writes) lines.push(`  stage_${stage} --> ${topic}`)
  }
  return `${lines.join('\n')}\n`
}
