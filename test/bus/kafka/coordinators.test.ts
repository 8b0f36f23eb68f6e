import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import type { Broker, Cluster } from '../../../bus/kafka/client.ts'
import { rememberCoordinators } from '../../../bus/kafka/coordinators.ts'

/** A broker whose requests go through its connections, as kafkajs's do, and fail while `failing`. */
class OneBroker {
  failing = false
  readonly connectionPool = {
    send: async () => {
      if (this.failing) throw new Error('NOT_COORDINATOR')
    },
  }

  async heartbeat(): Promise<void> {
    await this.connectionPool.send()
  }
}

function remembering(broker: OneBroker, find = async () => broker as unknown as Broker) {
  const asked: string[] = []
  const cluster = {
    findGroupCoordinator: ({
      groupId,
      coordinatorType = 0,
    }: {
      groupId: string
      coordinatorType?: number
    }) => {
      asked.push(`${groupId} ${coordinatorType}`)
      return find()
    },
  } as unknown as Cluster
  rememberCoordinators(cluster)
  const beat = async (groupId: string, coordinatorType?: number) => {
    const found = await cluster.findGroupCoordinator({ groupId, ...(coordinatorType && { coordinatorType }) })
    await (found as unknown as OneBroker).heartbeat()
  }
  return { asked, beat }
}

describe('coordinators', () => {
  it('are asked for once, for groups and transactional ids of the same name apart', async () => {
    const { asked, beat } = remembering(new OneBroker())
    await Promise.all([beat('a'), beat('a')])
    await beat('a')
    await beat('a', 1)
    await beat('b')
    assert.deepEqual(asked, ['a 0', 'a 1', 'b 0'])
  })

  it('are asked for again after a request failed', async () => {
    const broker = new OneBroker()
    const { asked, beat } = remembering(broker)
    await beat('a')
    broker.failing = true
    await assert.rejects(beat('a'), /NOT_COORDINATOR/)
    broker.failing = false
    await beat('a')
    await beat('a')
    assert.deepEqual(asked, ['a 0', 'a 0'])
  })

  it('are asked for again after nobody knew', async () => {
    const broker = new OneBroker()
    let known = false
    const find = async () => {
      if (!known) throw new Error('GROUP_COORDINATOR_NOT_AVAILABLE')
      return broker as unknown as Broker
    }
    const { asked, beat } = remembering(broker, find)
    await assert.rejects(beat('a'), /NOT_AVAILABLE/)
    known = true
    await beat('a')
    assert.deepEqual(asked, ['a 0', 'a 0'])
  })
})
