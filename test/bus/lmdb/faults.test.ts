import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { logFault, realCause } from '../../../bus/lmdb/faults.ts'
import { GraspError } from '../../../errors/grasp-error.ts'

function fault(code: unknown): string {
  return logFault('/data/log', 'write to', Object.assign(new Error('native text'), { code })).message
}

describe('faults of the log', () => {
  it('say what was being done, where, and what to do', () => {
    assert.match(
      fault('EACCES'),
      /^cannot write to the log in \/data\/log: no permission .* make the folder writable/,
    )
    assert.match(fault(13), /no permission/)
    assert.match(fault(30), /no permission/)
    assert.match(fault(28), /the disk is full/)
    assert.match(fault('ENOSPC'), /the disk is full/)
    assert.match(fault(5), /the disk is full or failing/)
    assert.match(fault('ENOTDIR'), /set log\.path to a folder/)
    assert.match(fault(-30793), /data\.mdb is damaged/)
    assert.match(fault(12345), /native text$/)
  })

  it('keep their code and cause', () => {
    const cause = Object.assign(new Error('x'), { code: 28 })
    const error = logFault('/p', 'open', cause)
    assert.equal(error.code, 'LOG_UNAVAILABLE')
    assert.equal(error.cause, cause)
  })

  it('leave an error alone that says it all', () => {
    const error = new GraspError('LOG_MISMATCH', 'other run')
    assert.equal(logFault('/p', 'open', error), error)
  })

  it('are taken from where lmdb-js hides them', async () => {
    const real = Object.assign(new Error('no space'), { code: 28 })
    const hidden = Object.assign(new Error('Commit failed'), { commitError: Promise.reject(real) })
    assert.equal(await realCause(hidden), real)
    assert.equal(await realCause(real), real)
    assert.equal(await realCause(undefined), undefined)
  })
})
