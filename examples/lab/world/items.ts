/** Questions of people, as items in LaMP-QA's format. */
import type { Aspect, Post } from '../../../schemas/types.ts'
import { aspectOf } from './misreadings.ts'
import type { Person, Sketch } from './people.ts'
import { evidence, FULL, makePerson } from './people.ts'
import { Random } from './random.ts'
import { NARRATIVES } from './smalltalk.ts'
import type { Topic } from './topics.ts'
import { TOPICS } from './topics.ts'

export interface LabItem {
  readonly id: string
  readonly question: string
  readonly narrative: string
  readonly category: string
  readonly profile: readonly Post[]
  readonly rubric_aspects: readonly Aspect[]
}

/** An item with what the world knows about it and no model sees. */
export interface Made {
  readonly item: LabItem
  readonly person: Person
  readonly topic: Topic
  /** Whether the rubric uses roundabout words where there are any. */
  readonly roundabout: boolean
}

/** Item `index` of a split: the same for the same seed, split and index, whatever else is made. */
export function makeItem(seed: number, split: string, index: number, sketch: Sketch = FULL): Made {
  const id = `${split}-${`${index + 1}`.padStart(4, '0')}`
  const random = new Random(`${seed}/${id}`)
  const person = makePerson(id, random, sketch)
  // Topics in turn: every category gets its share of every split.
  const topic = TOPICS[index % TOPICS.length]!
  const question = random.pick(topic.questions)
  const narrative = random.pick(NARRATIVES).replace('{about}', topic.about)
  const roundabout = random.unit() < sketch.roundabout
  return {
    person,
    topic,
    roundabout,
    item: {
      id,
      question,
      narrative,
      category: topic.category,
      profile: person.profile,
      rubric_aspects: person.facets.map(facet => ({
        aspect: aspectOf(topic, facet, roundabout),
        reason: facet.reason,
        evidence: evidence(person, facet).text,
      })),
    },
  }
}
