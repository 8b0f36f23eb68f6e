import assert from 'node:assert/strict'
import { test } from 'node:test'
import { listTopics } from '../../../bus/kafka/list-topics.ts'

/** Answers as kafkajs does: by what it destructures of null while topics have no leaders. */
function admin(failures: number, failure: () => Error) {
  let asked = 0
  return {
    get asked() {
      return asked
    },
    async listTopics() {
      if (asked++ < failures) throw failure()
      return ['a', 'b']
    },
  }
}
const nothing = () => new TypeError("Cannot destructure property 'topicMetadata' of null")

test('is asked again while topics have no leaders', async () => {
  const busy = admin(2, nothing)
  assert.deepEqual(await listTopics(busy), new Set(['a', 'b']))
  assert.equal(busy.asked, 3)
})

test('but not for ever, and other failures are the caller’s', async () => {
  await assert.rejects(listTopics(admin(99, nothing), 0), /no broker says which topics there are/)
  const refused = admin(1, () => new Error('refused'))
  await assert.rejects(listTopics(refused), /refused/)
  assert.equal(refused.asked, 1)
})
