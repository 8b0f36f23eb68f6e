import assert from 'node:assert/strict'
import { test } from 'node:test'
import { runCommand, type Session } from '../../cli/session.ts'
import { visible } from '../../cli/visible.ts'
import { GraspError } from '../../errors/grasp-error.ts'

test('control characters are spelled out, line breaks, tabs and everything else stay', () => {
  assert.equal(visible('a\x1b[2Jb\rc\x07\x7f\x9b1m\0'), 'a\\x1b[2Jb\\x0dc\\x07\\x7f\\x9b1m\\x00')
  for (const text of ['one\ntwo\tthree\n', 'Grüße, 世界 👩‍🚀 \u00a0–\n']) assert.equal(visible(text), text)
  assert.equal(visible('one\r\ntwo'), 'one\ntwo')
})

/** What a command writes, to terminals or not. */
async function written(isTTY: boolean, work: (session: Session) => Promise<void>) {
  const stream = () => {
    const texts: string[] = []
    return { isTTY, write: (text: string) => texts.push(text), texts }
  }
  const [stdout, stderr] = [stream(), stream()]
  await runCommand({ progress: false }, work, { stdin: process.stdin, stdout, stderr })
  return { out: stdout.texts.join(''), err: stderr.texts.join('') }
}

test('a terminal is not steered by what a command shows; what is piped stays as it is', async () => {
  const work = async (session: Session) => {
    session.say('said \x1b[1A')
    session.result({}, 'an answer \x1b]0;title\x07\n')
    throw new GraspError('RECORD_INVALID', 'a record \x1b[2K')
  }
  const shown = await written(true, work)
  assert.equal(shown.out, 'an answer \\x1b]0;title\\x07\n')
  assert.equal(shown.err, 'said \\x1b[1A\nerror RECORD_INVALID: a record \\x1b[2K\n')
  const piped = await written(false, work)
  assert.equal(piped.out, 'an answer \x1b]0;title\x07\n')
  assert.equal(piped.err, 'said \x1b[1A\nerror RECORD_INVALID: a record \x1b[2K\n')
})
