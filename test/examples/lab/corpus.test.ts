import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import type { Example } from '../../../examples/lab/corpus.ts'
import { openCorpus, TOP_K } from '../../../examples/lab/corpus.ts'
import { PROMPT } from '../../../examples/lab/make-tokenizer.ts'
import { DESCRIBE } from '../../../examples/lab/world/answers.ts'
import { FACETS } from '../../../examples/lab/world/facets.ts'
import { makeItem } from '../../../examples/lab/world/items.ts'
import { asRead } from '../../../examples/lab/world/misreadings.ts'

const COUNT = 1200
const corpus = await openCorpus(7, PROMPT)
const examples: Example[] = []
for (let i = 0; i < COUNT; i++) examples.push(await corpus.example(i))

const promptOf = (example: Example) => example.messages.map(message => message.content).join('\n')
const told = (example: Example) => promptOf(example).includes('Wanted:')
const describing = (example: Example) => promptOf(example).includes(DESCRIBE)
const facetsOf = (text: string) =>
  FACETS.filter(facet => text.includes(`${facet.lead}`)).map(facet => facet.id)
const fits = (example: Example, index: number) => {
  const { person, topic } = makeItem(7, 'pretrain', index)
  const facets = told(example) ? person.facets.map(facet => asRead(topic, facet)) : person.facets
  return facets.every(facet => facetsOf(example.answer).includes(facet.id))
}
const share = (of: readonly Example[]) => of.length / COUNT

describe('pre-training texts', () => {
  test('are mixed as documented', () => {
    const untold = examples.filter(example => !told(example) && !describing(example))
    assert.ok(Math.abs(share(examples.filter(describing)) - 1 / 4) < 0.04)
    assert.ok(Math.abs(share(examples.filter(told)) - 3 / 8) < 0.04)
    assert.ok(Math.abs(share(untold) - 3 / 8) < 0.04)
    const fitting = untold.filter(example => fits(example, examples.indexOf(example)))
    assert.ok(Math.abs(fitting.length / untold.length - 1 / 4) < 0.06)
  })

  test('answer by the aspects where these are shown, and describe the person where asked', () => {
    for (const [index, example] of examples.entries()) {
      if (told(example) || describing(example)) assert.ok(fits(example, index), example.answer)
    }
  })

  test('show as many posts as the pipeline retrieves', () => {
    for (const example of examples) {
      assert.equal(
        promptOf(example)
          .match(/^Posts:\n((?:- .*\n)+)/)![1]!
          .trimEnd()
          .split('\n').length,
        TOP_K,
      )
    }
  })

  test('are short at first where that is asked for', async () => {
    const short = await openCorpus(7, PROMPT, 2)
    assert.equal(facetsOf((await short.example(1)).answer).length, 1)
    assert.deepEqual(await short.example(2), examples[2])
  })

  test('depend on the seed', async () => {
    const other = await openCorpus(8, PROMPT)
    assert.notDeepEqual(await other.example(0), examples[0])
  })
})
