/**
 * kafkajs, and the part of its inside that this adapter stands on. Its public consumer decides by itself when to
 * rejoin a group and where to go on, and its admin cannot read records; so groups and fetches are done here, with
 * the requests that kafkajs has for them. Its version is pinned, and everything used of its inside is in this file
 * and in `produce.ts`.
 */
import { type CompressionTypes, Kafka, logLevel, type RetryOptions } from 'kafkajs'
import { compressionType, registerCodecs } from './compression.ts'
import { kafkaFault } from './faults.ts'
import { type KafkaLogOptions, TIMEOUTS } from './options.ts'
import { produceInOneCopy } from './produce.ts'

/** Back within seconds after a broker restarted, and patient for about three minutes. */
const RETRY: RetryOptions = { initialRetryTime: 100, maxRetryTime: 1000, retries: 180 }
/** For the first contact: a wrong address is told within seconds. */
const FIRST_RETRY: RetryOptions = { initialRetryTime: 100, maxRetryTime: 500, retries: 4 }

export interface RawMessage {
  readonly offset: string
  readonly timestamp: string
  readonly key: Buffer | null
  readonly value: Buffer | null
  readonly headers: Readonly<Record<string, Buffer | string | undefined>>
  readonly isControlRecord: boolean
  readonly batchContext: { readonly producerId: string; readonly inTransaction: boolean }
}

export interface FetchedPartition {
  readonly partition: number
  readonly lastStableOffset: string
  readonly abortedTransactions: readonly { readonly producerId: string; readonly firstOffset: string }[]
  readonly messages: readonly RawMessage[]
}

interface TopicRequest<P> {
  readonly topic: string
  readonly partitions: readonly P[]
}

export interface GroupMember {
  readonly memberId: string
  readonly memberMetadata: Buffer
}

/** A connection to one broker. Every method rejects with a KafkaJSProtocolError when the broker says no. */
export interface Broker {
  fetch(request: {
    maxWaitTime: number
    minBytes: number
    maxBytes: number
    isolationLevel: 1
    topics: readonly TopicRequest<{ partition: number; fetchOffset: string; maxBytes: number }>[]
  }): Promise<{ responses: readonly { topicName: string; partitions: readonly FetchedPartition[] }[] }>
  listOffsets(request: {
    isolationLevel: 0 | 1
    topics: readonly TopicRequest<{ partition: number; timestamp: number }>[]
  }): Promise<{ responses: readonly TopicRequest<{ partition: number; offset: string }>[] }>
  joinGroup(request: {
    groupId: string
    sessionTimeout: number
    rebalanceTimeout: number
    memberId: string
    groupProtocols: readonly { name: string; metadata: Buffer }[]
  }): Promise<{ generationId: number; leaderId: string; memberId: string; members: readonly GroupMember[] }>
  syncGroup(request: {
    groupId: string
    generationId: number
    memberId: string
    groupAssignment: readonly { memberId: string; memberAssignment: Buffer }[]
  }): Promise<{ memberAssignment: Buffer }>
  heartbeat(request: { groupId: string; groupGenerationId: number; memberId: string }): Promise<unknown>
  leaveGroup(request: { groupId: string; memberId: string }): Promise<unknown>
  offsetCommit(request: {
    groupId: string
    groupGenerationId: number
    memberId: string
    topics: readonly TopicRequest<{ partition: number; offset: string }>[]
  }): Promise<unknown>
  offsetFetch(request: { groupId: string; topics: readonly TopicRequest<{ partition: number }>[] }): Promise<{
    responses: readonly TopicRequest<{ partition: number; offset: string; metadata: string | null }>[]
  }>
}

/** Connections to the brokers of a cluster, and what is known of its topics. */
export interface Cluster {
  connect(): Promise<void>
  disconnect(): Promise<void>
  isConnected(): boolean
  addMultipleTargetTopics(topics: readonly string[]): Promise<void>
  refreshMetadata(): Promise<void>
  findTopicPartitionMetadata(topic: string): readonly { partitionId: number; leader: number }[]
  findBroker(node: { nodeId: number }): Promise<Broker>
  findGroupCoordinator(group: { groupId: string; coordinatorType?: number }): Promise<Broker>
  removeBroker(address: { host?: string | undefined; port?: number | undefined }): void
}

export class Client {
  readonly kafka: Kafka
  readonly brokers: readonly string[]
  readonly timeouts: typeof TIMEOUTS
  readonly compression: CompressionTypes
  readonly #config: ConstructorParameters<typeof Kafka>[0]

  constructor(options: KafkaLogOptions) {
    const { brokers, clientId = 'grasp', ssl, sasl, timeouts = {}, compression = 'none' } = options
    this.brokers = brokers
    this.timeouts = { ...TIMEOUTS, ...timeouts }
    this.compression = compressionType(compression)
    this.#config = {
      brokers: [...brokers],
      clientId,
      connectionTimeout: this.timeouts.connect,
      requestTimeout: this.timeouts.request,
      // Errors reach the caller as rejections; what kafkajs logs besides are its retries.
      logLevel: logLevel.NOTHING,
      retry: RETRY,
      ...(ssl === undefined ? {} : { ssl }),
      ...(sasl === undefined ? {} : { sasl }),
    }
    this.kafka = new Kafka(this.#config)
    produceInOneCopy(this.kafka)
  }

  /** Errors: LOG_UNAVAILABLE within seconds when no broker answers. */
  async firstContact(): Promise<void> {
    const admin = new Kafka({ ...this.#config, retry: FIRST_RETRY }).admin()
    try {
      await admin.connect()
    } catch (cause) {
      throw kafkaFault(this.brokers, 'reach', cause)
    } finally {
      await admin.disconnect()
    }
  }

  /** Connections of their own: a request that waits holds up those behind it. */
  cluster(): Cluster {
    const make = Object.getOwnPropertySymbols(this.kafka).find(({ description }) =>
      description?.endsWith('createCluster'),
    )!
    type Factory = Record<symbol, (options: object) => Cluster>
    return (this.kafka as unknown as Factory)[make]!({
      metadataMaxAge: 300_000,
      allowAutoTopicCreation: false,
      isolationLevel: 1,
    })
  }
}

registerCodecs()
