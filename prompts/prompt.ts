/**
 * The prompt that student and teacher answer. The teacher's differs from the student's by the lines of its
 * rubric blocks and by nothing else, because both are the same lines, once with those blocks and once without.
 *
 * Sections: `user`, and `system` if wanted, for the two messages; `passage` and `aspect` for how one retrieved
 * post and one rubric aspect are written (joined by line breaks into {{passages}} and {{rubric}}).
 */
import { fileURLToPath } from 'node:url'
import type { Message } from '../engine/port.ts'
import { GraspError } from '../errors/grasp-error.ts'
import type { Context } from '../schemas/types.ts'
import type { Line, PromptFile, Section, SectionRule } from './template.ts'
import { linesWith, promptError, readPromptFile, renderSection, standsAlone } from './template.ts'

export interface PromptTemplate {
  /** sha256 of the file's bytes, hexadecimal. */
  readonly hash: string
  /** What the student sees: question and passages, never the rubric. */
  student(context: Context): Message[]
  /** The same with the rubric block. Throws RECORD_INVALID for a context without aspects. */
  teacher(context: Context): Message[]
}

/** The prompt for instruct models that comes with the package. */
export const ANSWER_PROMPT = fileURLToPath(new URL('./answer.md', import.meta.url))

const MESSAGE: SectionRule = {
  slots: ['question', 'narrative', 'category', 'passages', 'rubric'],
  blocks: ['rubric', 'passages', 'narrative'],
}
const RULES = {
  system: MESSAGE,
  user: MESSAGE,
  passage: { slots: ['number', 'text'] },
  aspect: { slots: ['number', 'aspect', 'reason', 'evidence'] },
} as const satisfies Record<string, SectionRule>

/** Loads an answer prompt. Throws PROMPT_INVALID with file and line. */
export async function loadPrompt(path: string): Promise<PromptTemplate> {
  const file = await readPromptFile(path, RULES)
  const { sections } = file
  const messages = [sections.get('system'), requireSection(file, 'user')].filter(section => !!section)
  const passage = requireSection(file, 'passage')
  const aspect = requireSection(file, 'aspect')
  for (const section of messages) {
    if (!standsAlone(section)) {
      throw promptError(path, section.number, `section "${section.name}" would be empty without its blocks`)
    }
  }
  const stray = lines(messages, 'rubric').find(line => line.block !== 'rubric')
  if (stray) {
    const problem =
      '{{rubric}} outside the block {{#rubric}} … {{/rubric}}: the student would see the rubric too'
    throw promptError(path, stray.number, problem)
  }
  requireSlot(file, messages, 'question', line => line.block === undefined)
  requireSlot(file, messages, 'passages', line => line.block !== 'rubric')
  requireSlot(file, messages, 'rubric')
  requireSlot(file, [passage], 'text')
  requireSlot(file, [aspect], 'aspect')

  const render = (context: Context, forTeacher: boolean): Message[] => {
    const values = {
      question: context.question,
      narrative: context.narrative,
      category: context.category,
      passages: context.passages
        .map(({ text }, index) => renderSection(passage, { number: `${index + 1}`, text }, NO_BLOCKS))
        .join('\n'),
      rubric: context.aspects
        .map(({ aspect: name, reason, evidence }, index) =>
          renderSection(aspect, { number: `${index + 1}`, aspect: name, reason, evidence }, NO_BLOCKS),
        )
        .join('\n'),
    }
    const shown = new Set<string>()
    if (context.passages.length > 0) shown.add('passages')
    if (context.narrative !== '') shown.add('narrative')
    if (forTeacher) shown.add('rubric')
    return messages.map(section => ({
      role: section.name as 'system' | 'user',
      content: renderSection(section, values, shown),
    }))
  }

  return {
    hash: file.hash,
    student: context => render(context, false),
    teacher(context) {
      if (context.aspects.length === 0) {
        throw new GraspError(
          'RECORD_INVALID',
          `question ${context.id} has no rubric aspects, so there is no teacher's prompt; give it at least one`,
        )
      }
      return render(context, true)
    },
  }
}

const NO_BLOCKS: ReadonlySet<string> = new Set()

function requireSection(file: PromptFile, name: string): Section {
  const section = file.sections.get(name)
  if (!section) throw promptError(file.path, 1, `no section "${name}"; add a line "## ${name}" and its text`)
  if (section.lines.length === 0) throw promptError(file.path, section.number, `section "${name}" is empty`)
  return section
}

/** Throws unless the slot stands on a line that is shown to whom it must be. */
function requireSlot(
  file: PromptFile,
  sections: readonly Section[],
  slot: string,
  shown: (line: Line) => boolean = () => true,
): void {
  const found = lines(sections, slot)
  if (found.some(shown)) return
  const names = sections.map(section => `"${section.name}"`).join(' or ')
  const problem =
    found.length > 0 ? `stands only in {{#${found[0]!.block}}}; put it outside` : `is missing from ${names}`
  throw promptError(file.path, found[0]?.number ?? sections.at(-1)!.number, `the slot {{${slot}}} ${problem}`)
}

function lines(sections: readonly Section[], slot: string): Line[] {
  return sections.flatMap(section => linesWith(section, slot))
}
