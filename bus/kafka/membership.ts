/** One member of a consumer group: joining, being heard of, leaving. */
import { hostname } from 'node:os'
import { AssignerProtocol, type MemberDescription } from 'kafkajs'
import { assignPartitions } from './assign.ts'
import type { Broker, Cluster, GroupMember } from './client.ts'
import { rootOf, typeOf } from './faults.ts'
import type { Timeouts } from './options.ts'
import { type Member, NO_MEMBER, OUTDATED } from './requests.ts'
import { isPassing, retrying } from './retrying.ts'

const { MemberAssignment, MemberMetadata } = AssignerProtocol

const PROTOCOL = 'grasp-sticky'

/** What the members tell each other. */
interface Tale {
  readonly owned: readonly number[]
  readonly partitions: number
  readonly worker: string
}

/** `expelled`: the member was not heard of for too long; its partitions may have been another's since. */
export type Heard = 'member' | 'rebalance' | 'expelled'

export class Membership {
  readonly #cluster: Cluster
  readonly #group: string
  readonly #topic: string
  readonly #partitions: number
  readonly #timeouts: Required<Timeouts>
  readonly #since = new Date().toISOString()
  #member = ''
  #generation = -1
  /** As of the last time that it was told its partitions. */
  #synced: Member = NO_MEMBER
  #assigned: readonly number[] = []
  #coordinator: Broker | undefined
  /** When the request was sent that the coordinator last answered as to a member. */
  #heardAt = 0

  constructor(
    cluster: Cluster,
    group: string,
    topic: string,
    partitions: number,
    timeouts: Required<Timeouts>,
  ) {
    this.#cluster = cluster
    this.#group = group
    this.#topic = topic
    this.#partitions = partitions
    this.#timeouts = timeouts
  }

  /**
   * Joins, again when the group is shared out anew, and gives the partitions. Waits until all other members have
   * joined too. `continuous`: no other member can have had any of the partitions that were its own before.
   */
  async join(stopped: () => boolean): Promise<{ assigned: readonly number[]; continuous: boolean }> {
    const before = this.#synced
    for (;;) {
      try {
        const assigned = await retrying(this.#cluster, () => this.#joinOnce(), { stopped })
        const { memberId, generation } = this.#synced
        return { assigned, continuous: memberId === before.memberId && generation <= before.generation + 1 }
      } catch (error) {
        const type = typeOf(error)
        if (type === 'UNKNOWN_MEMBER_ID') this.#expelled()
        else if (!['REBALANCE_IN_PROGRESS', 'ILLEGAL_GENERATION', 'MEMBER_ID_REQUIRED'].includes(type))
          throw error
        if (stopped()) throw error
      }
    }
  }

  /** Says that it is alive. A coordinator that cannot be reached changes nothing yet. */
  async heartbeat(): Promise<Heard> {
    const sent = Date.now()
    try {
      const groupId = this.#group
      this.#coordinator ??= await this.#cluster.findGroupCoordinator({ groupId })
      await this.#coordinator.heartbeat({
        groupId,
        groupGenerationId: this.#generation,
        memberId: this.#member,
      })
      this.#heardAt = sent
      return 'member'
    } catch (error) {
      const type = typeOf(error)
      if (type === 'REBALANCE_IN_PROGRESS') return 'rebalance'
      if (type === 'UNKNOWN_MEMBER_ID' || type === 'ILLEGAL_GENERATION') {
        if (type === 'UNKNOWN_MEMBER_ID') this.#expelled()
        return 'expelled'
      }
      if (!isPassing(error)) throw error
      const { host, port } = rootOf(error) as { host?: string; port?: number }
      if (host !== undefined) this.#cluster.removeBroker({ host, port })
      this.#coordinator = undefined
      return 'member'
    }
  }

  /** Stores positions; false where the group is just being shared out anew. */
  async store(positions: ReadonlyMap<number, { offset: number; metadata: string }>): Promise<boolean> {
    const groupId = this.#group
    const partitions = [...positions].map(([partition, { offset, metadata }]) => {
      return { partition, offset: String(offset), metadata }
    })
    try {
      await retrying(this.#cluster, async () => {
        const coordinator = await this.#cluster.findGroupCoordinator({ groupId })
        await coordinator.offsetCommit({
          groupId,
          groupGenerationId: this.#generation,
          memberId: this.#member,
          topics: [{ topic: this.#topic, partitions }],
        })
      })
      return true
    } catch (error) {
      if (OUTDATED.has(typeOf(error))) return false
      throw error
    }
  }

  get member(): Member {
    return { memberId: this.#member, generation: this.#generation }
  }

  /** For how long it has not been heard of, in milliseconds. */
  get silence(): number {
    return Date.now() - this.#heardAt
  }

  /** Over other connections, since a fetch may hold up its own. */
  async leave(control: Cluster): Promise<void> {
    const memberId = this.#member
    const groupId = this.#group
    if (memberId === '') return
    this.#member = ''
    try {
      const coordinator = await control.findGroupCoordinator({ groupId })
      await coordinator.leaveGroup({ groupId, memberId })
    } catch (error) {
      // Without a broker to tell, the session ends by itself.
      if (!isPassing(error) && typeOf(error) !== 'UNKNOWN_MEMBER_ID') throw error
    }
  }

  #expelled(): void {
    this.#member = ''
    this.#assigned = []
  }

  async #joinOnce(): Promise<readonly number[]> {
    const owned = this.#assigned
    const groupId = this.#group
    const { session, rebalance } = this.#timeouts
    this.#coordinator = await this.#cluster.findGroupCoordinator({ groupId })
    const worker = `process ${process.pid} on ${hostname()} since ${this.#since}`
    const tale: Tale = { owned, partitions: this.#partitions, worker }
    const userData = Buffer.from(JSON.stringify(tale))
    const metadata = MemberMetadata.encode({ version: 1, topics: [this.#topic], userData })
    const joined = await this.#coordinator.joinGroup({
      groupId,
      sessionTimeout: session,
      rebalanceTimeout: rebalance,
      memberId: this.#member,
      groupProtocols: [{ name: PROTOCOL, metadata }],
    })
    this.#member = joined.memberId
    this.#generation = joined.generationId
    const sent = Date.now()
    const { memberAssignment } = await this.#coordinator.syncGroup({
      groupId,
      generationId: joined.generationId,
      memberId: joined.memberId,
      groupAssignment: joined.leaderId === joined.memberId ? assignment(joined.members) : [],
    })
    this.#heardAt = sent
    this.#synced = this.member
    this.#assigned = [...(MemberAssignment.decode(memberAssignment)?.assignment[this.#topic] ?? [])]
    return this.#assigned
  }
}

/** The leader's work. Members of one group may read different topics. */
function assignment(members: readonly GroupMember[]): { memberId: string; memberAssignment: Buffer }[] {
  const told = members.map(({ memberId, memberMetadata }) => {
    const { topics, userData } = MemberMetadata.decode(memberMetadata)!
    return { memberId, topic: topics[0]!, ...(JSON.parse(userData.toString()) as Tale) }
  })
  const topics = new Map(told.map(({ topic, partitions }) => [topic, partitions]))
  return [...topics].flatMap(([topic, partitions]) => {
    const candidates = told.filter(each => each.topic === topic)
    const assigned = assignPartitions(
      candidates.map(({ memberId, owned }) => ({ member: memberId, owned })),
      partitions,
    )
    return [...assigned].map(([memberId, own]) => ({
      memberId,
      memberAssignment: MemberAssignment.encode({
        version: 1,
        assignment: { [topic]: own },
        userData: Buffer.alloc(0),
      }),
    }))
  })
}

/** A member in words: what it says of itself, where the group is not just being shared out anew. */
export function workerOf({ memberId, clientHost, memberMetadata }: MemberDescription): string {
  if (memberMetadata.length === 0) return `member ${memberId} at ${clientHost.replace(/^\//, '')}`
  const { userData } = MemberMetadata.decode(memberMetadata)!
  return (JSON.parse(userData.toString()) as Tale).worker
}
