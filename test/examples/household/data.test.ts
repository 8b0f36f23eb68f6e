/** The household's data: 64 questions to train on and 16 held out, in LaMP-QA's format, with rubrics that its posts bear out. */
import assert from 'node:assert/strict'
import { readFile } from 'node:fs/promises'
import { describe, test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { loadConfig } from '../../../pipelines/config/load.ts'
import { loadPrompt } from '../../../prompts/prompt.ts'

interface Item {
  readonly id: string
  readonly user: string
  readonly question: string
  readonly narrative: string
  readonly category: string
  readonly profile: readonly { readonly id: string; readonly text: string }[]
  readonly rubric_aspects: readonly {
    readonly aspect: string
    readonly reason: string
    readonly evidence: string
  }[]
}

const path = (name: string) => fileURLToPath(new URL(`../../../examples/household/${name}`, import.meta.url))
async function items(split: string): Promise<Item[]> {
  const text = await readFile(path(`data/${split}.jsonl`), 'utf8')
  return text
    .trimEnd()
    .split('\n')
    .map(line => JSON.parse(line))
}
const [train, held] = [await items('train'), await items('test')]
const all = [...train, ...held]

describe('the household', () => {
  test('has 64 questions to train on and 16 held out, two of each person', () => {
    assert.equal(train.length, 64)
    assert.equal(held.length, 16)
    assert.equal(new Set(all.map(({ id }) => id)).size, 80)
    const people = [...new Set(train.map(({ user }) => user))]
    assert.equal(people.length, 8)
    for (const person of people) assert.equal(held.filter(({ user }) => user === person).length, 2, person)
  })

  test('asks nothing twice', () => {
    const questions = all.map(({ user, question }) => `${user}: ${question}`)
    assert.equal(new Set(questions).size, questions.length)
    const trained = new Set(train.map(({ question }) => question))
    for (const { id, question } of held) assert.ok(!trained.has(question), id)
  })

  test('has rubrics whose evidence a post gives', () => {
    for (const { id, profile, rubric_aspects: aspects } of all) {
      assert.ok(aspects.length >= 2, id)
      assert.equal(new Set(aspects.map(({ evidence }) => evidence)).size, aspects.length, id)
      for (const { aspect, reason, evidence } of aspects) {
        assert.ok(aspect !== '' && reason !== '', id)
        assert.ok(
          profile.some(({ text }) => text === evidence),
          `${id}: ${evidence}`,
        )
      }
    }
  })

  test('does not give a rubric away in the question', () => {
    for (const { id, question, rubric_aspects: aspects } of all) {
      for (const { aspect } of aspects) assert.ok(!question.includes(aspect), id)
    }
  })
})

test('the configuration and its prompt load', async () => {
  const config = loadConfig({ file: path('grasp.yaml') })
  assert.equal(config.training.epochs, 1)
  assert.ok(config.prompt !== undefined)
  await loadPrompt(config.prompt)
})
