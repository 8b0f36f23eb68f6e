import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { topologyMermaid, topologyText } from '../../../cli/topology-text.ts'
import { TOPOLOGY } from '../../../pipelines/topology.ts'
import { Workspace } from '../grasp.ts'

describe('describe', () => {
  test('JSON is the topology itself', async () => {
    using workspace = new Workspace()
    const { code, stdout } = await workspace.grasp('describe', '--json')
    assert.equal(code, 0)
    assert.deepEqual(JSON.parse(stdout), JSON.parse(JSON.stringify(TOPOLOGY)))
    const mermaid = await workspace.grasp('describe', '--format', 'mermaid')
    assert.equal(mermaid.stdout, topologyMermaid(TOPOLOGY))
  })

  test('text names every stage with its topics', () => {
    const text = topologyText(TOPOLOGY)
    for (const { stage, writes } of TOPOLOGY)
      assert.match(text, new RegExp(`^${stage} .*${writes.join(', ')}`, 'm'))
  })

  test('Mermaid has an edge from each topic to its reader and from each stage to what it writes', () => {
    const stages = [
      { stage: 'ingest', reads: null, writes: ['questions'], what: '' },
      { stage: 'retrieval', reads: 'questions', writes: ['contexts', 'updates'], what: '' },
    ] as const
    assert.deepEqual(
      topologyMermaid(stages)
        .trim()
        .split('\n')
        .map(line => line.trim()),
      [
        'flowchart LR',
        'files[/data files/]',
        'questions[(questions)]',
        'contexts[(contexts)]',
        'updates[(updates)]',
        'stage_ingest[ingest]',
        'files --> stage_ingest',
        'stage_ingest --> questions',
        'stage_retrieval[retrieval]',
        'questions --> stage_retrieval',
        'stage_retrieval --> contexts',
        'stage_retrieval --> updates',
      ],
    )
  })
})
