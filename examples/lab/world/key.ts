/** The answer key of the world, for the lexical judge. */
import type { LexicalKey } from '../../../judges/lexical-key.ts'
import { FACETS } from './facets.ts'
import { aspectOf } from './misreadings.ts'
import { recommendation } from './recommendations.ts'
import { TOPICS } from './topics.ts'

export function makeKey(): LexicalKey {
  const aspects: LexicalKey['aspects'] = {}
  for (const facet of FACETS) {
    for (const topic of TOPICS) {
      for (const roundabout of [false, true]) {
        const aspect = aspectOf(topic, facet, roundabout)
        aspects[aspect] ??= { touches: [...facet.touches], recommendations: {} }
        aspects[aspect].recommendations[topic.id] = [recommendation(topic.id, facet.id)]
      }
    }
  }
  return {
    note: 'Synthetic. Made by examples/lab/make-data.ts for the lexical judge (judges/lexical.ts).',
    topics: Object.fromEntries(TOPICS.map(topic => [topic.id, [...topic.questions]])),
    aspects,
  }
}
