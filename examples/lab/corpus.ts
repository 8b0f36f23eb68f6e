/**
 * The backbone's pre-training texts: prompts as the pipeline renders them, after its retriever, and answers.
 *
 * - A quarter ask what the person's posts say about them: the answer names their preferences.
 * - Half of the others show the aspects, and the answer follows them as the backbone learns to read them
 *   (misreadings.ts).
 * - The rest show none: a quarter of these answers fit the person all the same, the others fit nobody.
 *
 * So the backbone can tell what a person wants, and it can advise somebody whose wishes it is told; what it seldom
 * does is the one for the sake of the other.
 */
import type { Message } from '../../engine/port.ts'
import { loadPrompt } from '../../prompts/prompt.ts'
import { createBm25Retriever } from '../../retrievers/bm25.ts'
import type { Context } from '../../schemas/types.ts'
import { answer, DESCRIBE, description, genericFacets } from './world/answers.ts'
import type { LabItem } from './world/items.ts'
import { makeItem } from './world/items.ts'
import { asRead } from './world/misreadings.ts'
import type { Sketch } from './world/people.ts'
import { FULL } from './world/people.ts'
import { Random } from './world/random.ts'

/** Posts in a prompt; the lab's configuration retrieves as many. */
export const TOP_K = 7
const DESCRIBING = 0.25
const WITH_ASPECTS = 0.5
const FITTING = 0.25

/** The first texts are short: a person of one facet who has posted twice. What they teach is learnt sooner so. */
const SHORT: Sketch = { facets: 1, each: 1, more: 0, others: 1, smalltalk: 0, roundabout: 1 }
const LONG: Sketch = { ...FULL, roundabout: 1 }

export interface Example {
  readonly messages: readonly Message[]
  readonly answer: string
}

export interface Corpus {
  /** Example `index`: the same for the same seed and index. */
  example(index: number): Promise<Example>
}

/** @param short how many texts, from the first, are short. */
export async function openCorpus(seed: number, promptPath: string, short = 0): Promise<Corpus> {
  const prompt = await loadPrompt(promptPath)
  const retriever = createBm25Retriever()
  return {
    async example(index) {
      const made = makeItem(seed, 'pretrain', index, index < short ? SHORT : LONG)
      const random = new Random(`${seed}/answer/${index}`)
      if (random.unit() < DESCRIBING) {
        const context = await contextOf({ ...made.item, question: DESCRIBE })
        return { messages: prompt.student(context), answer: description(made.person.facets) }
      }
      const context = await contextOf(made.item)
      if (random.unit() < WITH_ASPECTS) {
        return {
          messages: prompt.teacher(context),
          answer: answer(
            made.topic,
            made.person.facets.map(facet => asRead(made.topic, facet)),
            random,
          ),
        }
      }
      const facets =
        random.unit() < FITTING
          ? made.person.facets
          : genericFacets(made.topic, made.person.facets.length, random)
      return { messages: prompt.student(context), answer: answer(made.topic, facets, random) }
    },
  }

  async function contextOf(item: LabItem): Promise<Context> {
    return {
      id: item.id,
      user: item.id,
      split: 'pretrain',
      category: item.category,
      question: item.question,
      narrative: item.narrative,
      aspects: item.rubric_aspects,
      passages: await retriever.retrieve(item, item.profile, TOP_K),
      profileSize: item.profile.length,
      retriever: retriever.hash,
    }
  }
}
