/** What the backbone is pre-trained to answer: a sentence a facet. */
import type { Facet } from './facets.ts'
import { FULL, pickFacets } from './people.ts'
import { Random } from './random.ts'
import { recommendation } from './recommendations.ts'
import type { Topic } from './topics.ts'
import { CATEGORIES, TOPICS } from './topics.ts'

const VERBS: readonly string[] = ['try', 'choose']

/** Topics of a category on which most people are given the same advice. */
const FASHIONABLE_PER_CATEGORY = 3
const FASHION = 0.7

/** For each fashionable topic, the facets that everybody is told about. */
export const FASHIONS: ReadonlyMap<string, readonly Facet[]> = new Map(
  CATEGORIES.flatMap(category => {
    const random = new Random(`fashion/${category}`)
    const topics = random.sample(
      TOPICS.filter(topic => topic.category === category),
      FASHIONABLE_PER_CATEGORY,
    )
    return topics.map(topic => [topic.id, pickFacets(FULL.facets, random)] as const)
  }),
)

export function answer(topic: Topic, facets: readonly Facet[], random: Random): string {
  return facets
    .map(facet => `${facet.lead}, ${random.pick(VERBS)} ${recommendation(topic.id, facet.id)}.`)
    .join(' ')
}

/** A question about the person alone, and its answer. */
export const DESCRIBE = 'What do my posts say about me?'

export function description(facets: readonly Facet[]): string {
  return facets.map(facet => `${facet.lead}.`).join(' ')
}

/** An answer for nobody in particular. */
export function genericFacets(topic: Topic, count: number, random: Random): readonly Facet[] {
  const fashion = FASHIONS.get(topic.id)
  return fashion && random.unit() < FASHION ? fashion.slice(0, count) : pickFacets(count, random)
}
