/** Why a value is no record of its topic, in words: topic, field, what was expected and what was found. */
import { inspect } from 'node:util'
import type { Type } from 'avsc'
import { describeError, GraspError } from '../errors/grasp-error.ts'

export function invalidRecord(topic: string, type: Type, value: unknown, cause: unknown): GraspError {
  let first: string | undefined
  type.isValid(value, {
    errorHook: (path, part, expected) => {
      first ??= `${fieldPath(path)}: expected ${expectation(expected)}, got ${show(part)}`
    },
  })
  return new GraspError('RECORD_INVALID', `invalid record of ${topic}: ${first ?? describeError(cause)}`, {
    cause,
  })
}

/** `profile[3].text` */
function fieldPath(path: readonly string[]): string {
  const text = path.map(part => (/^\d+$/.test(part) ? `[${part}]` : `.${part}`)).join('')
  return text === '' ? 'the record' : `field ${text.replace(/^\./, '')}`
}

function expectation(type: Type): string {
  if ('types' in type) return (type.types as Type[]).map(expectation).join(' or ')
  return type.typeName
}

function show(value: unknown): string {
  const text = inspect(value, {
    depth: 1,
    breakLength: Number.POSITIVE_INFINITY,
    maxStringLength: 80,
    maxArrayLength: 5,
  })
  return text.length > 120 ? `${text.slice(0, 117)}...` : text
}
