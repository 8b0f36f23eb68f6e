/** The answer key of the world, for the lexical judge. */
import type { LexicalKey } from '../../../judges/lexical-key.ts'
import { FACETS } from './facets.ts'
import { recommendation } from './recommendations.ts'
import { TOPICS } from './topics.ts'

export function makeKey(): LexicalKey {
  return {
    note: 'Synthetic. Made by examples/lab/make-data.ts for the lexical judge (judges/lexical.ts).',
    topics: Object.fromEntries(TOPICS.map(topic => [topic.id, [...topic.questions]])),
    aspects: Object.fromEntries(
      FACETS.map(facet => [
        facet.aspect,
        {
          touches: [...facet.touches],
          recommendations: Object.fromEntries(
            TOPICS.map(topic => [topic.id, [recommendation(topic.id, facet.id)]]),
          ),
        },
      ]),
    ),
  }
}
