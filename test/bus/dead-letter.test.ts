import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { createCodec } from '../../bus/codec.ts'
import { deadLetter, deadLetterOfItem } from '../../bus/dead-letter.ts'
import { GraspError } from '../../errors/grasp-error.ts'
import { question } from './samples.ts'

describe('dead letters', () => {
  const codec = createCodec()
  const source = {
    topic: 'questions' as const,
    partition: 2,
    offset: 17,
    key: 'ключ',
    timestamp: 1,
    payload: codec.encode('questions', question('a')),
  }

  it('carry where the record stood, why it failed, and the record itself', () => {
    const error = new GraspError('PROMPT_TOO_LONG', '900 tokens do not fit into 512')
    const { topic, key, value } = deadLetter(source, { stage: 'rollout', error, attempts: 3 })
    assert.equal(topic, 'deadletters')
    assert.equal(key, 'ключ')
    assert.deepEqual(value, {
      stage: 'rollout',
      topic: 'questions',
      partition: 2,
      offset: 17,
      key: 'ключ',
      code: 'PROMPT_TOO_LONG',
      message: '900 tokens do not fit into 512',
      attempts: 3,
      payload: source.payload,
    })
    const stored = codec.decode('deadletters', codec.encode('deadletters', value))
    assert.deepEqual(codec.decode('questions', stored.payload), question('a'))
  })

  it('take any error', () => {
    const { value } = deadLetter(source, { stage: 's', error: 'text' })
    assert.deepEqual([value.code, value.message, value.attempts], ['RECORD_INVALID', 'text', 1])
  })

  it('of data items carry the item as JSON', () => {
    const error = new GraspError('RECORD_INVALID', 'item 3 lacks a question')
    const item = { id: 'x', text: 'é' }
    const { value } = deadLetterOfItem('x', item, { stage: 'ingest', error })
    assert.equal(value.topic, '')
    assert.deepEqual(JSON.parse(new TextDecoder().decode(value.payload)), item)
    assert.equal(
      new TextDecoder().decode(deadLetterOfItem('x', undefined, { stage: 's', error }).value.payload),
      'null',
    )
  })
})
