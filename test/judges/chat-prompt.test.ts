import assert from 'node:assert/strict'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, describe, it } from 'node:test'
import { JUDGE_PROMPT, loadJudgePrompt } from '../../judges/chat-prompt.ts'

const folder = await mkdtemp(join(tmpdir(), 'grasp-judge-prompt-'))
after(() => rm(folder, { recursive: true }))

async function load(text: string) {
  const path = join(folder, 'j.md')
  await writeFile(path, text)
  return loadJudgePrompt(path)
}

const ITEM = {
  question: 'Which tea?',
  narrative: 'For the evening.',
  category: 'Lifestyle_and_Personal_Development',
  aspect: { aspect: 'No caffeine', reason: 'Sleeps badly', evidence: 'I lay awake again' },
  response: 'Try rooibos.',
}

describe("the judge's prompt", () => {
  it('that comes with the package shows everything that the judge is to weigh', async () => {
    const [system, user] = (await loadJudgePrompt(JUDGE_PROMPT)).messages(ITEM)
    assert.deepEqual([system!.role, user!.role], ['system', 'user'])
    const { aspect, category: _, ...texts } = ITEM
    for (const text of [...Object.values(texts), ...Object.values(aspect)])
      assert.ok(user!.content.includes(text), text)
    assert.match(user!.content, /\{"match_score": N\}/)
  })

  it('leaves out an empty narrative, reason and evidence', async () => {
    const prompt = await loadJudgePrompt(JUDGE_PROMPT)
    const [, user] = prompt.messages({
      ...ITEM,
      narrative: '',
      aspect: { aspect: 'x', reason: '', evidence: '' },
    })
    for (const text of ['own words', 'Why it matters', 'What shows'])
      assert.ok(!user!.content.includes(text), text)
  })

  it('inserts the answer as it is', async () => {
    const prompt = await load('## user\n{{question}} {{aspect}}\n{{response}}')
    const response = '{{question}} $& \n## user\n{{#narrative}}'
    assert.equal(prompt.messages({ ...ITEM, response })[0]!.content, `Which tea? No caffeine\n${response}`)
  })

  it('is refused without what it needs', async () => {
    const invalid = (message: RegExp) => ({ code: 'PROMPT_INVALID', message })
    await assert.rejects(load('## user\n{{aspect}} {{response}}'), invalid(/j\.md:1: the slot {{question}}/))
    const hidden = '## user\n{{question}} {{aspect}}\n{{#reason}}\n{{response}}\n{{/reason}}'
    await assert.rejects(load(hidden), invalid(/:4: the slot {{response}} must stand outside any block/))
    await assert.rejects(load('## system\n{{question}}'), invalid(/no section "user"/))
    await assert.rejects(load('## user\n{{rubric}}'), invalid(/:2: unknown slot {{rubric}}/))
  })
})
