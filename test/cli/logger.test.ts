import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createLogger } from '../../cli/logger.ts'

test('JSON lines, or short lines for a person; quieter levels are left out', () => {
  const lines: string[] = []
  const json = createLogger('warn', false, line => lines.push(line))
  json.info('not shown')
  json.warn({ file: 'x' }, 'shown')
  const { time, ...rest } = JSON.parse(lines.join('')) as Record<string, unknown>
  assert.equal(typeof time, 'number')
  assert.deepEqual(rest, { level: 40, file: 'x', msg: 'shown' })

  const human: string[] = []
  createLogger('debug', true, line => human.push(line)).debug({ n: 2, file: 'x' }, 'here')
  assert.deepEqual(human, ['debug: here n=2 file=x\n'])
  createLogger('silent', true, line => human.push(line)).error('no')
  assert.equal(human.length, 1)
})
