/**
 * kafkajs, and the part of its inside that this adapter stands on. Its public consumer decides by itself when to
 * rejoin a group and where to go on, and its admin cannot read records; so groups and fetches are done here, with
 * the requests that kafkajs has for them. Its version is pinned, and everything used of its inside is in this file,
 * in `produce.ts`, in `coordinators.ts` and in `requests.ts`.
 */
import { createRequire } from 'node:module'
import {
  type Admin,
  type CompressionTypes,
  type ISocketFactory,
  Kafka,
  type KafkaConfig,
  logLevel,
  Partitioners,
  type Producer,
  type ProducerConfig,
  type RetryOptions,
} from 'kafkajs'
import { compressionType, registerCodecs } from './compression.ts'
import { rememberCoordinators } from './coordinators.ts'
import { kafkaFault } from './faults.ts'
import { type KafkaLogOptions, type Timeouts, timeoutsOf } from './options.ts'
import { produceInOneCopy } from './produce.ts'
import { type Member, type TxnOffsets, txnOffsetCommit } from './requests.ts'

/** kafkajs's sockets. It lets go of one again and again while that connects, which Node.js takes for a leak. */
const makeSocket = createRequire(import.meta.url)('kafkajs/src/network/socketFactory')() as ISocketFactory
const socketFactory: ISocketFactory = options => {
  const socket = makeSocket(options)
  socket.setMaxListeners(0)
  return socket
}

/** Impatient, since whoever waits for a broker (`patiently`) must also hear that it is to stop. */
const RETRY: RetryOptions = { initialRetryTime: 50, maxRetryTime: 500, retries: 3 }
const ADMIN_RETRY: RetryOptions = { initialRetryTime: 100, maxRetryTime: 1000, retries: 30 }
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
  readonly highWatermark: string
  readonly lastStableOffset: string
  readonly abortedTransactions: readonly { readonly producerId: string; readonly firstOffset: string }[]
  readonly messages: readonly RawMessage[]
}

export interface TopicRequest<P> {
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
    topics: readonly TopicRequest<{ partition: number; offset: string; metadata?: string }>[]
  }): Promise<unknown>
}

/** Connections to the brokers of a cluster, and what is known of its topics. */
export interface Cluster {
  /** How long its brokers may be away, in milliseconds. */
  patience?: number
  connect(): Promise<void>
  disconnect(): Promise<void>
  addMultipleTargetTopics(topics: readonly string[]): Promise<void>
  refreshMetadata(): Promise<void>
  findTopicPartitionMetadata(topic: string): readonly { partitionId: number; leader: number }[]
  findBroker(node: { nodeId: number }): Promise<Broker>
  findGroupCoordinator(group: { groupId: string; coordinatorType?: number }): Promise<Broker>
  removeBroker(address: { host?: string | undefined; port?: number | undefined }): void
}

export class Client {
  readonly brokers: readonly string[]
  readonly timeouts: Required<Timeouts>
  readonly compression: CompressionTypes
  readonly #config: KafkaConfig
  readonly #releasing = new Set<Promise<void>>()
  #closed = false

  constructor(options: KafkaLogOptions) {
    const { brokers, clientId = 'grasp', ssl, sasl, timeouts, compression = 'none' } = options
    this.brokers = brokers
    this.timeouts = timeoutsOf(timeouts)
    this.compression = compressionType(compression)
    this.#config = {
      brokers: [...brokers],
      clientId,
      connectionTimeout: this.timeouts.connect,
      requestTimeout: this.timeouts.request,
      // Errors reach the caller as rejections; what kafkajs logs besides are its retries.
      logLevel: logLevel.NOTHING,
      retry: RETRY,
      socketFactory,
      ...(ssl === undefined ? {} : { ssl }),
      ...(sasl === undefined ? {} : { sasl }),
    }
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

  /** Whoever still waits for a broker gives up. Resolves when the producers that were released are disconnected. */
  async close(): Promise<void> {
    this.#closed = true
    await Promise.all(this.#releasing)
  }

  /** Disconnects a producer. That it could not be told to a broker changes nothing. */
  release(producer: Producer): Promise<void> {
    const releasing = producer.disconnect().catch(() => {})
    this.#releasing.add(releasing)
    releasing.then(() => this.#releasing.delete(releasing))
    return releasing
  }

  get closed(): boolean {
    return this.#closed
  }

  admin(): Admin {
    return new Kafka({ ...this.#config, retry: ADMIN_RETRY }).admin()
  }

  /** Connections of their own: a request that waits holds up those behind it. */
  cluster(): Cluster {
    const { make } = clusterMaker(new Kafka(this.#config))
    const cluster = make({ metadataMaxAge: 300_000, allowAutoTopicCreation: false, isolationLevel: 1 })
    cluster.patience = this.timeouts.away
    return this.#ending(cluster)
  }

  idempotentProducer(): Producer {
    return this.#producer({ idempotent: true }, () => {})
  }

  /** `member`: in whose name it sends offsets, asked each time. */
  transactionalProducer(transactionalId: string, member: () => Member): Producer {
    const transactionTimeout = this.timeouts.transaction
    return this.#producer({ transactionalId, transactionTimeout }, cluster => {
      rememberCoordinators(cluster)
      const find = cluster.findGroupCoordinator.bind(cluster)
      cluster.findGroupCoordinator = async group => {
        const broker = await find(group)
        const commit = (offsets: TxnOffsets) => txnOffsetCommit(broker, offsets, member())
        return Object.create(broker, { txnOffsetCommit: { value: commit } }) as Broker
      }
    })
  }

  #producer(options: ProducerConfig, equip: (cluster: Cluster) => void): Producer {
    const kafka = new Kafka(this.#config)
    const { symbol, make } = clusterMaker(kafka)
    const equipped = (how: object) => {
      const cluster = this.#ending(make(how))
      produceInOneCopy(cluster)
      equip(cluster)
      return cluster
    }
    Object.assign(kafka, { [symbol]: equipped })
    const createPartitioner = Partitioners.DefaultPartitioner
    return kafka.producer({ ...options, allowAutoTopicCreation: false, createPartitioner })
  }

  /** kafkajs connects again by itself, also long after nobody wants it to. */
  #ending(cluster: Cluster): Cluster {
    const connect = cluster.connect.bind(cluster)
    cluster.connect = async () => {
      if (this.#closed) throw Object.assign(new Error('the log was closed'), { retriable: false })
      return connect()
    }
    return cluster
  }
}

type MakeCluster = (options: object) => Cluster

function clusterMaker(kafka: Kafka): { readonly symbol: symbol; readonly make: MakeCluster } {
  const symbol = Object.getOwnPropertySymbols(kafka).find(({ description }) =>
    description?.endsWith('createCluster'),
  )!
  return { symbol, make: (kafka as unknown as Record<symbol, MakeCluster>)[symbol]! }
}

registerCodecs()
