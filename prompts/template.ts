/**
 * Prompt files: Markdown with a section a role, slots, and optional blocks.
 *
 *     Text above the first section is a comment.
 *     ## user
 *     {{#passages}}
 *     Earlier posts:
 *     {{passages}}
 *     {{/passages}}
 *     Question: {{question}}
 *
 * A section starts at a line `## name`, the name one lower-case word; any other heading is text. A block is
 * whole lines between `{{#name}}` and `{{/name}}`, each marker alone on its line; blocks do not nest. Blank
 * lines at a section's ends are dropped. A section is parsed once into lines; what fills a slot is inserted
 * as it is and never looked at again, so a post that says `{{rubric}}` stays just that.
 */
import { createHash } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import { describeError, GraspError } from '../errors/grasp-error.ts'

export interface Line {
  /** Its line in the file, from 1. */
  readonly number: number
  /** The block it stands in; it is rendered when that block is shown. */
  readonly block?: string
  readonly parts: readonly (string | { readonly slot: string })[]
}

export interface Section {
  readonly name: string
  /** The line of its heading, from 1. */
  readonly number: number
  readonly lines: readonly Line[]
}

/** What a section may hold. */
export interface SectionRule {
  readonly slots: readonly string[]
  readonly blocks?: readonly string[]
}

export interface PromptFile {
  readonly path: string
  /** sha256 of the file's bytes, hexadecimal. */
  readonly hash: string
  readonly sections: ReadonlyMap<string, Section>
}

/** Reads and parses a prompt file. Every section of the file must have a rule. */
export async function readPromptFile(path: string, rules: Record<string, SectionRule>): Promise<PromptFile> {
  let bytes: Buffer
  try {
    bytes = await readFile(path)
  } catch (error) {
    throw new GraspError('PROMPT_INVALID', `${path}: cannot read the prompt file: ${describeError(error)}`, {
      cause: error,
    })
  }
  let text: string
  try {
    text = new TextDecoder('utf-8', { fatal: true }).decode(bytes)
  } catch (error) {
    throw new GraspError('PROMPT_INVALID', `${path}: not UTF-8 text; save the prompt file as UTF-8`, {
      cause: error,
    })
  }
  const hash = createHash('sha256').update(bytes).digest('hex')
  return { path, hash, sections: parseSections(text, path, rules) }
}

/** Renders a section: its lines outside blocks, and those of the blocks shown, in order. */
export function renderSection(
  section: Section,
  values: Readonly<Record<string, string>>,
  shown: ReadonlySet<string>,
): string {
  return section.lines
    .filter(line => line.block === undefined || shown.has(line.block))
    .map(line => line.parts.map(part => (typeof part === 'string' ? part : values[part.slot]!)).join(''))
    .join('\n')
}

/** The lines of a section on which a slot stands. */
export function linesWith(section: Section, slot: string): Line[] {
  return section.lines.filter(line => line.parts.some(part => typeof part !== 'string' && part.slot === slot))
}

/** A section of which something is left when no block is shown. */
export function standsAlone(section: Section): boolean {
  return section.lines.some(line => line.block === undefined && !isBlank(line))
}

export function promptError(path: string, line: number, problem: string): GraspError {
  return new GraspError('PROMPT_INVALID', `${path}:${line}: ${problem}`)
}

function parseSections(
  text: string,
  path: string,
  rules: Record<string, SectionRule>,
): ReadonlyMap<string, Section> {
  const sections = new Map<string, { name: string; number: number; lines: Line[] }>()
  let current: { name: string; number: number; lines: Line[] } | undefined
  let block: { name: string; number: number } | undefined
  const closeBlock = () => {
    if (block)
      throw promptError(path, block.number, `{{#${block.name}}} is never closed; add {{/${block.name}}}`)
  }
  for (const [index, source] of text.split(/\r?\n/).entries()) {
    const number = index + 1
    const heading = /^## ([a-z][a-z-]*)\s*$/.exec(source)?.[1]
    if (heading !== undefined) {
      closeBlock()
      if (!Object.hasOwn(rules, heading)) {
        const known = Object.keys(rules).join(', ')
        throw promptError(
          path,
          number,
          `unknown section "${heading}"; sections are ${known} (write ### for a heading within the prompt)`,
        )
      }
      const first = sections.get(heading)
      if (first)
        throw promptError(path, number, `section "${heading}" was already given on line ${first.number}`)
      current = { name: heading, number, lines: [] }
      sections.set(heading, current)
      continue
    }
    if (!current) continue
    const rule = rules[current.name]!
    const marker = /^\s*\{\{\s*([#/])\s*([^{}]*?)\s*\}\}\s*$/.exec(source)
    if (marker) {
      const name = marker[2]!
      if (marker[1] === '#') {
        if (block)
          throw promptError(path, number, `{{#${name}}} inside {{#${block.name}}}: blocks do not nest`)
        if (!rule.blocks?.includes(name)) {
          throw promptError(
            path,
            number,
            `unknown block "${name}"; blocks of "${current.name}": ${listed(rule.blocks)}`,
          )
        }
        block = { name, number }
      } else {
        if (block?.name !== name) throw promptError(path, number, `{{/${name}}} closes no open {{#${name}}}`)
        block = undefined
      }
      continue
    }
    const parts = parseLine(source, path, number, current.name, rule)
    current.lines.push(block ? { number, block: block.name, parts } : { number, parts })
  }
  closeBlock()
  return new Map(
    [...sections].map(([name, section]) => [name, { ...section, lines: trimmed(section.lines) }]),
  )
}

function parseLine(
  source: string,
  path: string,
  number: number,
  section: string,
  rule: SectionRule,
): Line['parts'] {
  const parts: (string | { slot: string })[] = []
  let rest = source
  for (;;) {
    const open = rest.indexOf('{{')
    if (open < 0) break
    const slot = /^\{\{\s*([^{}]*?)\s*\}\}/.exec(rest.slice(open))
    if (!slot) throw promptError(path, number, 'a slot is opened with {{ and not closed with }} on this line')
    const name = slot[1]!
    if (/^[#/]/.test(name)) {
      throw promptError(path, number, `{{${name}}} must stand alone on its line`)
    }
    if (!rule.slots.includes(name)) {
      throw promptError(
        path,
        number,
        `unknown slot {{${name}}}; slots of "${section}": ${listed(rule.slots)}`,
      )
    }
    if (open > 0) parts.push(rest.slice(0, open))
    parts.push({ slot: name })
    rest = rest.slice(open + slot[0].length)
  }
  if (rest !== '') parts.push(rest)
  return parts
}

function trimmed(lines: readonly Line[]): Line[] {
  const first = lines.findIndex(line => !isBlank(line))
  return first < 0 ? [] : lines.slice(first, lines.findLastIndex(line => !isBlank(line)) + 1)
}

function isBlank(line: Line): boolean {
  return line.parts.every(part => typeof part === 'string' && part.trim() === '')
}

function listed(names: readonly string[] | undefined): string {
  return names?.length ? names.join(', ') : 'none'
}
