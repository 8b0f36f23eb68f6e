/**
 * Preferences that many rubrics of a category put in roundabout words, and what the backbone learns to take the
 * words for: always the same other facet of the same group, which nobody has beside the right one. So a teacher
 * that is shown such a rubric is wrong, and predictably; a student that goes by the posts need not be. This is
 * what validating the teacher (RTV) is for: random slips would average out in the KL, these do not.
 */
import type { Facet } from './facets.ts'
import { FACET } from './facets.ts'
import type { Topic } from './topics.ts'

export interface Misreading {
  readonly category: string
  readonly facet: string
  readonly wording: string
  readonly readAs: string
}

const ART = 'Art_and_Entertainment'
const LIFE = 'Lifestyle_and_Personal_Development'
const SOCIETY = 'Society_and_Culture'

export const MISREADINGS: readonly Misreading[] = [
  { category: ART, facet: 'knees', wording: 'Goes easy on worn joints', readAs: 'eyes' },
  { category: ART, facet: 'phone', wording: 'Stays off paper', readAs: 'screens' },
  { category: ART, facet: 'budget', wording: 'Can be had for pennies', readAs: 'local' },
  { category: LIFE, facet: 'minutes', wording: 'Is over before the kettle boils', readAs: 'dawn' },
  { category: LIFE, facet: 'dog', wording: 'Has room for four paws', readAs: 'children' },
  { category: LIFE, facet: 'vegan', wording: 'Leaves the cows in peace', readAs: 'nostalgia' },
  { category: SOCIETY, facet: 'outdoors', wording: 'Breaks out of four walls', readAs: 'flat' },
  { category: SOCIETY, facet: 'headphones', wording: 'Goes in at the ear', readAs: 'phone' },
  { category: SOCIETY, facet: 'beginner', wording: 'Asks for no head start', readAs: 'challenge' },
]

/** Undefined where there are only plain words for it. */
export function misreading(topic: Topic, facet: Facet): Misreading | undefined {
  return MISREADINGS.find(each => each.category === topic.category && each.facet === facet.id)
}

/** The rubric's aspect for a facet, in a question on a topic. */
export function aspectOf(topic: Topic, facet: Facet, roundabout: boolean): string {
  return (roundabout ? misreading(topic, facet)?.wording : undefined) ?? facet.aspect
}

/** What a teacher takes the roundabout words for, where there are any. */
export function asRead(topic: Topic, facet: Facet): Facet {
  const found = misreading(topic, facet)
  return found ? FACET.get(found.readAs)! : facet
}
