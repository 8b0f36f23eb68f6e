/** People with hidden preferences, and the posts in which these show. */
import type { Post } from '../../../schemas/types.ts'
import type { Facet } from './facets.ts'
import { FACETS } from './facets.ts'
import type { Random } from './random.ts'
import { OTHERS, SMALLTALK } from './smalltalk.ts'
import type { Topic } from './topics.ts'
import { TOPICS } from './topics.ts'

export interface Person {
  readonly id: string
  /** In the order of FACETS, each of another group. */
  readonly facets: readonly Facet[]
  /** In the order of writing. */
  readonly profile: readonly Post[]
}

/** How much there is to know about a person, how much of what they post is something else, and how they put it. */
export interface Sketch {
  readonly facets: number
  /** Posts that show the person's own facets: each facet this often, and `more` of any. */
  readonly each: number
  readonly more: number
  /** Posts about somebody else's preference. */
  readonly others: number
  readonly smalltalk: number
  /** The share of rubrics that put things in roundabout words where there are any (misreadings.ts). */
  readonly roundabout: number
}

export const FULL: Sketch = { facets: 3, each: 2, more: 1, others: 2, smalltalk: 1, roundabout: 0.6 }

export function makePerson(id: string, random: Random, sketch: Sketch = FULL): Person {
  const facets = pickFacets(sketch.facets, random)
  const own = [
    ...facets.flatMap(facet => random.sample(facet.own, sketch.each)),
    ...Array.from({ length: sketch.more }, () => random.pick(random.pick(facets).own)),
  ].map(trait => ownPost(trait, random.pick(TOPICS), random))
  const strange = FACETS.filter(facet => !facets.some(mine => mine.group === facet.group))
  const others = random.sample(strange, sketch.others).map(facet => othersPost(facet, random))
  const texts = random.shuffled([...own, ...others, ...random.sample(SMALLTALK, sketch.smalltalk)])
  return { id, facets, profile: texts.map((text, i) => ({ id: `${id}-${i + 1}`, text })) }
}

/** Facets that one person can have, in the order of FACETS. */
export function pickFacets(count: number, random: Random): readonly Facet[] {
  const groups = random.sample([...new Set(FACETS.map(facet => facet.group))], count)
  const chosen = groups.map(group => random.pick(FACETS.filter(facet => facet.group === group)))
  return FACETS.filter(facet => chosen.includes(facet))
}

function ownPost(trait: string, topic: Topic, random: Random): string {
  const opener = random.pick(topic.openers)
  return random.unit() < 0.5 ? `${opener} ${trait}` : `${trait} ${opener}`
}

function othersPost(facet: Facet, random: Random): string {
  return `My ${random.pick(OTHERS)} ${random.pick(facet.others)} ${random.pick(random.pick(TOPICS).openers)}`
}

/** The first post in which the facet shows. */
export function evidence(person: Person, facet: Facet): Post {
  const post = person.profile.find(({ text }) => facet.own.some(trait => text.includes(trait)))
  if (!post) throw new RangeError(`person ${person.id} never shows ${facet.id}`)
  return post
}
