/** What is wrong with a configuration, in words a person can act on: where, what was found, what may be there. */
import type { z } from 'zod'
import { configShape, expected, formatPath, type KeyPath, type Shape, shapeAt, walk } from './shape.ts'
import { nearest } from './suggest.ts'

export interface Problem {
  readonly path: KeyPath
  /** Without the place: `training.seed is 'x', expected an integer of at least 0`. */
  readonly text: string
}

/** An address may hold a user and password (`https://user:password@host`), or a key (`https://host/?key=…`). */
export function withoutCredentials(text: string): string {
  return text.replace(/[^\s,=/'"@]*:[^\s,'"@]*@/g, '…@').replace(/(:\/\/[^\s?'"]*\?)[^\s'"]*/g, '$1…')
}

export function show(value: unknown): string {
  if (typeof value === 'string') {
    const text = withoutCredentials(value)
    return text.length > 60 ? `'${text.slice(0, 57)}...'` : `'${text}'`
  }
  if (Array.isArray(value)) return `[${value.map(show).join(', ')}]`
  if (value !== null && typeof value === 'object') return 'a section'
  return String(value)
}

function valueAt(root: unknown, path: KeyPath): unknown {
  return path.reduce<unknown>(
    (value, key) => (value as Record<string | number, unknown> | undefined)?.[key],
    root,
  )
}

/** Which key a wrong one meant: of its section, else the same key in another section. */
function meant(key: string, section: KeyPath, shape: Shape | undefined): string {
  const siblings = Object.keys(shape?.properties ?? {})
  const near = nearest(key, siblings)
  if (near) return `did you mean ${formatPath([...section, near])}?`
  const elsewhere = [...walk(configShape)].filter(([path]) => path.length > 1 && path.at(-1) === key)
  const places = [...new Set(elsewhere.map(([path]) => formatPath(path)))]
  if (places.length > 0 && places.length <= 3) return `did you mean ${places.join(' or ')}?`
  const top = section.length > 0 ? nearest(key, Object.keys(configShape.properties ?? {})) : undefined
  if (top) return `did you mean ${top}?`
  return siblings.length > 0 ? `known keys: ${siblings.join(', ')}` : 'leave it out'
}

export function unknownKey(key: string, section: KeyPath, root: unknown): Problem {
  const path = [...section, key]
  return {
    path,
    text: `${formatPath(path)} is not a configuration key; ${meant(key, section, shapeAt(section, root))}`,
  }
}

/** Turns the schema's issues into problems, one for each key path. */
export function problemsOf(error: z.ZodError, root: unknown): Problem[] {
  const problems = new Map<string, Problem>()
  for (const issue of error.issues) {
    const path = issue.path as KeyPath
    if (issue.code === 'unrecognized_keys') {
      for (const key of issue.keys) {
        const problem = unknownKey(key, path, root)
        problems.set(formatPath(problem.path), problem)
      }
      continue
    }
    const key = formatPath(path)
    const above = path.map((_, i) => formatPath(path.slice(0, i)))
    if ([...above, key].some(place => problems.has(place))) continue
    const value = valueAt(root, path)
    const shape = shapeAt(path, root)
    const name = key === '' ? 'the configuration' : key
    const wanted = shape ? `expected ${expected(shape)}` : issue.message
    const doc = value === undefined && shape?.description ? `. ${shape.description}` : ''
    const isComplete = issue.code === 'custom' && issue.params?.complete === true
    if (isComplete) problems.set(key, { path, text: `${name} ${issue.message}` })
    else if (issue.code === 'custom') problems.set(key, { path, text: `${name} ${issue.message}; ${wanted}` })
    else if (value === undefined) problems.set(key, { path, text: `${name} is missing; ${wanted}${doc}` })
    else if (shape?.format === 'environment-variable') {
      // What stands there may be the secret itself.
      problems.set(key, { path, text: `${name} is not a name; ${wanted}, not the secret itself` })
    } else if (shape?.properties && (typeof value !== 'object' || Array.isArray(value))) {
      // Such as a user and password where a section with their names is meant.
      problems.set(key, { path, text: `${name} is no section; ${wanted}` })
    } else problems.set(key, { path, text: `${name} is ${show(value)}; ${wanted}` })
  }
  return [...problems.values()]
}
