/**
 * Who coordinates a group or a transactional id, remembered. kafkajs asks anew before each request of a transaction,
 * which is as many requests again; here it is asked once, and again after a request to the coordinator failed.
 */
import type { Broker, Cluster } from './client.ts'

interface ConnectionPool {
  send(request: object): Promise<unknown>
}

export function rememberCoordinators(cluster: Cluster): void {
  const find = cluster.findGroupCoordinator.bind(cluster)
  const known = new Map<string, Promise<Broker>>()
  cluster.findGroupCoordinator = group => {
    const key = `${group.coordinatorType ?? 0}/${group.groupId}`
    const remembered = known.get(key)
    if (remembered) return remembered
    const forget = () => {
      if (known.get(key) === found) known.delete(key)
    }
    const found = find(group).then(broker => telling(broker, forget))
    known.set(key, found)
    found.catch(forget)
    return found
  }
}

/** The broker, by a connection that calls `failed` when a request fails. */
function telling(broker: Broker, failed: () => void): Broker {
  const pool = (broker as unknown as { connectionPool: ConnectionPool }).connectionPool
  const send = async (request: object) => {
    try {
      return await pool.send(request)
    } catch (error) {
      failed()
      throw error
    }
  }
  const connectionPool = Object.create(pool, { send: { value: send } })
  return Object.create(broker, { connectionPool: { value: connectionPool } })
}
