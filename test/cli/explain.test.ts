import assert from 'node:assert/strict'
import { test } from 'node:test'
import { exitCode } from '../../cli/exit-code.ts'
import { renderError } from '../../cli/explain.ts'
import { GraspError } from '../../errors/grasp-error.ts'

test('a known error is its code and message; the stacks of it and its causes only for debugging', () => {
  const error = new GraspError('DATA_INVALID', 'x.json: is empty', { cause: new Error('below') })
  assert.equal(renderError(error, false), 'error DATA_INVALID: x.json: is empty\n')
  assert.match(
    renderError(error, true),
    /^error DATA_INVALID: x\.json: is empty\nGraspError: [\s\S]*Error: below\n/,
  )
})

test('errors of the system get a hint, unknown ones ask for a report', () => {
  const full = Object.assign(new Error('ENOSPC: no space left'), { code: 'ENOSPC' })
  assert.match(renderError(full, false), /^error ENOSPC: ENOSPC: no space left\n {2}hint: the disk is full/)
  assert.match(
    renderError(new TypeError('x is not a function'), false),
    /^error UNEXPECTED: x is not a function\n {2}hint: this should not/,
  )
  assert.match(renderError('text', false), /^error UNEXPECTED: text\n$/)
})

test('exit codes', () => {
  assert.equal(exitCode(new GraspError('CONFIG_INVALID', '')), 2)
  assert.equal(exitCode(new GraspError('INTERRUPTED', '')), 130)
  assert.equal(exitCode(new GraspError('DATA_INVALID', '')), 1)
  assert.equal(exitCode(new Error('')), 1)
})
