import assert from 'node:assert/strict'
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, describe, it } from 'node:test'
import { GraspError } from '../../errors/grasp-error.ts'
import { ANSWER_PROMPT, loadPrompt } from '../../prompts/prompt.ts'
import type { Context } from '../../schemas/types.ts'

const folder = await mkdtemp(join(tmpdir(), 'grasp-prompt-'))
after(() => rm(folder, { recursive: true }))

async function load(text: string | Uint8Array) {
  const path = join(folder, 'p.md')
  await writeFile(path, text)
  return loadPrompt(path)
}

const CONTEXT: Context = {
  id: 'q1',
  user: 'u1',
  split: 'train',
  category: 'Society_and_Culture',
  question: 'Which museum first?',
  narrative: 'I have one day.',
  aspects: [
    { aspect: 'Quiet places', reason: 'Crowds tire them', evidence: 'I left the fair early' },
    { aspect: 'Textiles', reason: 'They weave', evidence: 'My loom arrived' },
  ],
  passages: [
    { id: 'p1', text: 'My loom arrived.', score: 2 },
    { id: 'p2', text: 'I left the fair early.', score: 1 },
  ],
  profileSize: 2,
  retriever: 'r',
}

const PROMPT = `A comment with {{anything}}.

## system
Be brief.

## user
Posts:
{{passages}}
{{#rubric}}

Cover:
{{rubric}}
{{/rubric}}
{{#narrative}}
In mind: {{narrative}}
{{/narrative}}

Q ({{category}}): {{question}}
## passage
{{number}}. {{text}}
## aspect
* {{aspect}}, {{reason}}
  ({{evidence}})
`

describe('an answer prompt', () => {
  it('is rendered for student and teacher', async () => {
    const prompt = await load(PROMPT)
    assert.deepEqual(prompt.student(CONTEXT), [
      { role: 'system', content: 'Be brief.' },
      {
        role: 'user',
        content: `Posts:
1. My loom arrived.
2. I left the fair early.
In mind: I have one day.

Q (Society_and_Culture): Which museum first?`,
      },
    ])
    assert.deepEqual(prompt.teacher(CONTEXT), [
      { role: 'system', content: 'Be brief.' },
      {
        role: 'user',
        content: `Posts:
1. My loom arrived.
2. I left the fair early.

Cover:
* Quiet places, Crowds tire them
  (I left the fair early)
* Textiles, They weave
  (My loom arrived)
In mind: I have one day.

Q (Society_and_Culture): Which museum first?`,
      },
    ])
  })

  // The teacher may know more than the student only through the rubric: any other difference would be distilled.
  it("is the student's byte for byte once the rubric block is taken out of the teacher's", async () => {
    const block = `
Cover:
* Quiet places, Crowds tire them
  (I left the fair early)
* Textiles, They weave
  (My loom arrived)
`
    const prompt = await load(PROMPT)
    const teacher = prompt.teacher(CONTEXT)[1]!.content
    assert.equal(teacher.split(block).length, 2)
    assert.equal(
      teacher.replace(block, () => ''),
      prompt.student(CONTEXT)[1]!.content,
    )
  })

  it('that comes with the package shows the rubric to the teacher alone, and the narrative to nobody', async () => {
    const prompt = await loadPrompt(ANSWER_PROMPT)
    const [student, teacher] = [prompt.student(CONTEXT), prompt.teacher(CONTEXT)]
    assert.deepEqual(
      student.map(({ role }) => role),
      ['system', 'user'],
    )
    for (const { aspect, reason } of CONTEXT.aspects) {
      assert.ok(!JSON.stringify(student).includes(aspect) && !JSON.stringify(student).includes(reason))
      assert.ok(teacher[1]!.content.includes(aspect) && teacher[1]!.content.includes(reason))
    }
    for (const messages of [student, teacher]) {
      assert.ok(messages[1]!.content.includes(CONTEXT.question))
      for (const { text } of CONTEXT.passages) assert.ok(messages[1]!.content.includes(text))
      assert.ok(!JSON.stringify(messages).includes(CONTEXT.narrative))
    }
    for (const [index, { content }] of student.entries()) {
      let at = 0
      for (const line of content.split('\n')) {
        // Every line of the student's stands in the teacher's, in the same order.
        at = teacher[index]!.content.indexOf(line, at)
        assert.ok(at >= 0, line)
      }
    }
  })

  it('that the documentation shows can be used', async () => {
    const docs = await readFile(new URL('../../docs/prompts.md', import.meta.url), 'utf8')
    const prompt = await load(/```markdown\n([\s\S]*?)```/.exec(docs)![1]!)
    assert.match(
      prompt.teacher(CONTEXT)[1]!.content,
      /A good answer covers:\n- Quiet places \(Crowds tire them\)\n/,
    )
  })

  it('leaves out what is not there: posts, narrative', async () => {
    const prompt = await loadPrompt(ANSWER_PROMPT)
    const [, user] = prompt.student({ ...CONTEXT, passages: [] })
    assert.equal(
      user!.content,
      `Question: ${CONTEXT.question}\n\nAnswer the question directly and concretely.`,
    )
    const other = await load(PROMPT)
    assert.ok(!other.student({ ...CONTEXT, narrative: '' })[1]!.content.includes('In mind'))
  })

  it('inserts content as it is, whatever it looks like', async () => {
    const prompt = await load(PROMPT)
    const text =
      'a {{rubric}} {{#rubric}}\n{{/rubric}}\n## user\n$& $1 $$ \\n {{question}} 🎉\u2028\r\n\ttab '
    const context = {
      ...CONTEXT,
      question: text,
      narrative: text,
      passages: [{ id: 'p', text, score: 1 }],
      aspects: [{ aspect: text, reason: text, evidence: text }],
    }
    assert.equal(
      prompt.student(context)[1]!.content,
      `Posts:\n1. ${text}\nIn mind: ${text}\n\nQ (Society_and_Culture): ${text}`,
    )
    assert.equal(
      prompt.teacher(context)[1]!.content,
      `Posts:\n1. ${text}\n\nCover:\n* ${text}, ${text}\n  (${text})\nIn mind: ${text}\n\nQ (Society_and_Culture): ${text}`,
    )
  })

  it('needs no system section, and takes Windows line ends, spaces in slots and other headings', async () => {
    const text = '## user\n{{ passages }}\n## Question\n{{question}}\n{{#rubric}}\n{{rubric}}\n{{/rubric}}\n'
    const parts = '## passage\n{{text}}\n## aspect\n{{aspect}}\n'
    const prompt = await load(`\ufeff${text}${parts}`.replaceAll('\n', '\r\n'))
    assert.deepEqual(prompt.student(CONTEXT), [
      { role: 'user', content: 'My loom arrived.\nI left the fair early.\n## Question\nWhich museum first?' },
    ])
  })

  it('has the hash of its bytes', async () => {
    const first = await load(PROMPT)
    assert.match(first.hash, /^[0-9a-f]{64}$/)
    assert.equal((await load(PROMPT)).hash, first.hash)
    assert.notEqual((await load(`${PROMPT} `)).hash, first.hash)
  })

  it('has no teacher without aspects', async () => {
    const prompt = await load(PROMPT)
    assert.throws(
      () => prompt.teacher({ ...CONTEXT, aspects: [] }),
      error =>
        error instanceof GraspError && error.code === 'RECORD_INVALID' && /question q1/.test(error.message),
    )
  })
})

describe('a wrong prompt file is refused with file and line', () => {
  const cases: [string, (prompt: string) => string, RegExp][] = [
    [
      'an unknown slot',
      p => p.replace('{{question}}', '{{query}}'),
      /p\.md:18: unknown slot {{query}}; slots of "user": question, /,
    ],
    [
      "another section's slot",
      p => p.replace('{{number}}. {{text}}', '{{text}} {{question}}'),
      /:20: unknown slot {{question}}; slots of "passage": number, text/,
    ],
    ['an empty slot', p => p.replace('Be brief.', 'Be {{}} brief.'), /:4: unknown slot {{}}/],
    [
      'a slot left open',
      p => p.replace('{{question}}', '{{question'),
      /:18: a slot is opened with {{ and not closed/,
    ],
    [
      'no question',
      p => p.replace('{{question}}', '?'),
      /:6: the slot {{question}} is missing from "system" or "user"/,
    ],
    ['no passages', p => p.replace('{{passages}}', ''), /:6: the slot {{passages}} is missing/],
    ['no rubric', p => p.replace('{{rubric}}', ''), /:6: the slot {{rubric}} is missing/],
    [
      'no rubric block',
      p => p.replace('{{#rubric}}\n', '').replace('{{/rubric}}\n', ''),
      /:11: {{rubric}} outside the block/,
    ],
    [
      'a rubric outside its block',
      p => p.replace('Posts:', 'Posts: {{rubric}}'),
      /:7: {{rubric}} outside the block/,
    ],
    [
      'passages for the teacher alone',
      p => p.replace('{{passages}}\n', '').replace('Cover:', '{{passages}}'),
      /:10: the slot {{passages}} stands only in {{#rubric}}; put it outside/,
    ],
    [
      'a question that a block hides',
      p => p.replace('In mind:', '{{question}}').replace(': {{question}}', ''),
      /:15: the slot {{question}} stands only in {{#narrative}}/,
    ],
    ['no text slot', p => p.replace('{{text}}', 'post'), /:19: the slot {{text}} is missing from "passage"/],
    [
      'no aspect slot',
      p => p.replace('{{aspect}}', 'it'),
      /:21: the slot {{aspect}} is missing from "aspect"/,
    ],
    ['no user section', p => p.replace('## user', '### user'), /:1: no section "user"/],
    ['no aspect section', p => p.replace(/## aspect[\s\S]*/, ''), /:1: no section "aspect"/],
    ['an empty section', p => p.replace('{{number}}. {{text}}\n', '\n'), /:19: section "passage" is empty/],
    [
      'a section twice',
      p => p.replace('## passage', '## system'),
      /:19: section "system" was already given on line 3/,
    ],
    [
      'an unknown section',
      p => p.replace('## passage', '## post'),
      /:19: unknown section "post"; sections are system, user, passage, aspect/,
    ],
    ['an unknown block', p => p.replaceAll(/([#/])narrative/g, '$1story'), /:14: unknown block "story"/],
    ['a block left open', p => p.replace('{{/narrative}}\n', ''), /:14: {{#narrative}} is never closed/],
    [
      'a block within a block',
      p => p.replace('Cover:', '{{#narrative}}'),
      /:11: {{#narrative}} inside {{#rubric}}/,
    ],
    [
      'a block that was not opened',
      p => p.replace('{{#narrative}}\n', ''),
      /:15: {{\/narrative}} closes no open/,
    ],
    [
      'a block within a line',
      p => p.replace('Posts:', '{{#passages}}Posts:{{/passages}}'),
      /:7: {{#passages}} must stand alone on its line/,
    ],
    [
      'a message of a block alone',
      p => p.replace('Be brief.', '{{#rubric}}\nBe brief.\n{{/rubric}}'),
      /:3: section "system" would be empty without its blocks/,
    ],
    ['nothing', () => '', /:1: no section "user"/],
  ]
  for (const [name, change, message] of cases) {
    it(name, async () => {
      const text = change(PROMPT)
      assert.notEqual(text, PROMPT)
      await assert.rejects(load(text), error => {
        assert.ok(error instanceof GraspError, String(error))
        assert.equal(error.code, 'PROMPT_INVALID')
        assert.match(error.message, message)
        return true
      })
    })
  }

  it('a file that is not there, or not text', async () => {
    await assert.rejects(loadPrompt(join(folder, 'none.md')), {
      code: 'PROMPT_INVALID',
      message: /none\.md: cannot read .*ENOENT/,
    })
    await assert.rejects(load(Uint8Array.of(0x23, 0xff, 0xfe)), {
      code: 'PROMPT_INVALID',
      message: /not UTF-8/,
    })
  })
})
