/** The configuration file that `grasp init` writes: every key with what it means; defaults are commented out. */
import { configShape, expected, type Shape } from './shape.ts'

/** What a person must replace. */
const PLACEHOLDERS: Readonly<Record<string, unknown>> = {
  run: 'my-run',
  'model.path': 'path/to/model',
  'data.train': 'path/to/train.json',
}

/** Wide enough for a comment and its indentation. */
const WIDTH = 100

function comment(text: string, indent: string): string[] {
  const lines: string[] = []
  let line = `${indent}#`
  for (const word of text.split(' ')) {
    if (line.length + word.length + 1 > WIDTH) {
      lines.push(line)
      line = `${indent}#`
    }
    line += ` ${word}`
  }
  return [...lines, line]
}

/** A value in YAML's flow style, which JSON is. */
function inline(value: unknown): string {
  if (typeof value === 'string') return /^[\w./-]+$/.test(value) ? value : JSON.stringify(value)
  return Array.isArray(value) ? `[${value.map(inline).join(', ')}]` : String(value)
}

/** Choices and two-sided ranges; that a count is at least 1 goes without saying. */
function allowed(shape: Shape): string {
  const twoSided = shape.minimum !== undefined && shape.maximum !== undefined && shape.maximum < 1e9
  return shape.enum || twoSided ? ` (${expected(shape)})` : ''
}

/** `active` keys must be there: they are written out, all others are commented. */
function keyLines(name: string, path: string, shape: Shape, active: boolean, depth: number): string[] {
  const indent = '  '.repeat(depth)
  const doc = comment(`${shape.description ?? ''}${allowed(shape)}`, indent)
  if (shape.oneOf) return kindLines(name, shape, depth)
  const mark = active ? '' : '# '
  if (shape.type === 'object') {
    return [...doc, `${indent}${mark}${name}:`, ...sectionLines(shape, path, depth + 1, active)]
  }
  const value = PLACEHOLDERS[path] ?? shape.default
  return [...doc, `${indent}${mark}${name}:${value === undefined ? '' : ` ${inline(value)}`}`]
}

/** A section with kinds: the first is chosen, the others are shown. */
function kindLines(name: string, shape: Shape, depth: number): string[] {
  const indent = '  '.repeat(depth)
  const [first, ...others] = shape.oneOf ?? []
  const kindOf = (branch: Shape | undefined) => String(branch?.properties?.kind?.const)
  const body = (branch: Shape | undefined) =>
    Object.entries(branch?.properties ?? {}).flatMap(([key, child]) =>
      key === 'kind' ? [] : keyLines(key, `${name}.${key}`, child, false, depth + 1),
    )
  return [
    ...comment(shape.description ?? '', indent),
    `${indent}${name}:`,
    ...comment(first?.properties?.kind?.description ?? '', `${indent}  `),
    `${indent}  kind: ${kindOf(first)}`,
    ...body(first),
    ...others.flatMap(branch => [
      '',
      ...comment(`Or ${branch.properties?.kind?.description ?? ''}`, `${indent}  `),
      `${indent}  # kind: ${kindOf(branch)}`,
      ...body(branch),
    ]),
  ]
}

function sectionLines(shape: Shape, path: string, depth: number, active: boolean): string[] {
  const required = new Set(active ? shape.required : [])
  const blocks = Object.entries(shape.properties ?? {}).map(([key, child]) =>
    keyLines(key, path === '' ? key : `${path}.${key}`, child, required.has(key), depth),
  )
  return depth === 0 ? blocks.flatMap((block, i) => (i === 0 ? block : ['', ...block])) : blocks.flat()
}

const HEAD = [
  '# Configuration of a GRASP run; `grasp run` reads grasp.yaml of the working directory, or --config FILE.',
  '# Commented keys show their default. Paths of what is read are relative to this file, paths of what is',
  '# written to the working directory. --set key=value changes a key for one call.',
  '',
]

export function configTemplate(): string {
  return `${[...HEAD, ...sectionLines(configShape, '', 0, true)].join('\n')}\n`
}
