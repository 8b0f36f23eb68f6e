/** What the backbone is pre-trained to answer: a sentence a facet. */
import type { Facet } from './facets.ts'
import { FACETS } from './facets.ts'
import { FULL, pickFacets } from './people.ts'
import { Random } from './random.ts'
import { recommendation } from './recommendations.ts'
import type { Topic } from './topics.ts'
import { CATEGORIES, TOPICS } from './topics.ts'

const VERBS: readonly string[] = ['try', 'choose']

/** The share of topic–facet pairs that the backbone learns wrongly where it is shown the aspects. */
const MISTAKEN_PER_TOPIC = 4
/** Topics of a category on which most people are given the same advice. */
const FASHIONABLE_PER_CATEGORY = 3
const FASHION = 0.7

/** The pairs on which a teacher that sees the aspects is wrong: `topic/facet`. */
export const MISTAKEN: ReadonlySet<string> = new Set(
  TOPICS.flatMap(topic =>
    new Random(`mistaken/${topic.id}`)
      .sample(FACETS, MISTAKEN_PER_TOPIC)
      .map(facet => `${topic.id}/${facet.id}`),
  ),
)

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

export function answer(topic: Topic, facets: readonly Facet[], mistaken: boolean, random: Random): string {
  return facets
    .map(facet => {
      const wrong = mistaken && MISTAKEN.has(`${topic.id}/${facet.id}`)
      return `${facet.lead}, ${random.pick(VERBS)} ${recommendation(topic.id, (wrong ? confusedWith(facet) : facet).id)}.`
    })
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

/** The next facet of the same group: nobody has both, so the mistake never helps by chance. */
function confusedWith(facet: Facet): Facet {
  const group = FACETS.filter(other => other.group === facet.group)
  return group[(group.indexOf(facet) + 1) % group.length]!
}
