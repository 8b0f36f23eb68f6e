/** The topics of a run in the cluster: made with the right settings, or checked to have them. */
import kafkajs, { type Admin } from 'kafkajs'
import { GraspError } from '../../errors/grasp-error.ts'
import { TOPICS, type Topic } from '../../schemas/types.ts'
import { typeOf } from './faults.ts'
import { APPEAR_MS, listTopics } from './list-topics.ts'
import type { Names } from './names.ts'
import { delay, isPassing } from './retrying.ts'

export interface TopicSettings {
  readonly partitions: Partial<Record<Topic, number>>
  readonly replication: number
  readonly maxMessageBytes: number
  readonly retentionHours: number | undefined
}

interface Wanted {
  readonly name: string
  readonly label: string
  /** Undefined: as it is, or 1 when it is made. */
  readonly partitions: number | undefined
  readonly config: Readonly<Record<string, string>>
}

/** Only the newest record of each key is needed. */
const COMPACTED: ReadonlySet<Topic> = new Set(['policies'])

/**
 * Makes missing topics when allowed, and checks those that exist; gives how many partitions each has.
 *
 * Errors: LOG_MISMATCH naming topic, setting, what was found and what was expected; LOG_UNAVAILABLE for topics
 * that are missing and may not be made.
 */
export async function ensureTopics(
  admin: Admin,
  names: Names,
  settings: TopicSettings,
  { create }: { readonly create: boolean },
): Promise<Map<Topic, number>> {
  const wanted = wantedTopics(names, settings)
  const existing = await listTopics(admin)
  const missing = wanted.filter(({ name }) => !existing.has(name))
  if (missing.length > 0) {
    if (!create) throw absent(missing, missing.length === wanted.length)
    await make(admin, missing, settings.replication)
  }
  const shapes = await shapesOf(
    admin,
    wanted.map(({ name }) => name),
  )
  const present = wanted.filter(({ name }) => existing.has(name))
  await check(admin, present, shapes, settings.replication)
  return new Map(TOPICS.map(topic => [topic, shapes.get(names.topic(topic))!.partitions]))
}

function wantedTopics(names: Names, settings: TopicSettings): Wanted[] {
  const { partitions, maxMessageBytes, retentionHours } = settings
  const size = { 'max.message.bytes': String(maxMessageBytes) }
  const compacted = { ...size, 'cleanup.policy': 'compact' }
  const retention = String(retentionHours === undefined ? -1 : retentionHours * 3_600_000)
  const kept = { ...size, 'cleanup.policy': 'delete', 'retention.ms': retention, 'retention.bytes': '-1' }
  const topics = TOPICS.map(topic => ({
    name: names.topic(topic),
    label: topic,
    partitions: partitions[topic],
    config: COMPACTED.has(topic) ? compacted : kept,
  }))
  return [...topics, { name: names.meta, label: 'meta', partitions: 1, config: compacted }]
}

/** Again while another process makes the same topics, or the brokers have only just started. */
async function make(admin: Admin, missing: readonly Wanted[], replication: number): Promise<void> {
  const deadline = Date.now() + APPEAR_MS
  for (let left = missing; left.length > 0; ) {
    try {
      await admin.createTopics({
        waitForLeaders: false,
        topics: left.map(({ name, partitions, config }) => ({
          topic: name,
          numPartitions: partitions ?? 1,
          replicationFactor: replication,
          configEntries: Object.entries(config).map(([key, value]) => ({ name: key, value })),
        })),
      })
      return
    } catch (error) {
      const { errors = [error] } = error as { errors?: readonly unknown[] }
      const fault = errors.find(each => !mayPass(each))
      if (fault || Date.now() > deadline) throw fault ?? errors[0]
      await delay(200)
      const existing = await listTopics(admin)
      left = left.filter(({ name }) => !existing.has(name))
    }
  }
}

/** Brokers that are not yet registered count as too few replicas. */
function mayPass(error: unknown): boolean {
  return isPassing(error) || ['TOPIC_ALREADY_EXISTS', 'INVALID_REPLICATION_FACTOR'].includes(typeOf(error))
}

/** How a topic is laid out. */
interface Shape {
  readonly partitions: number
  /** Of the partition that has fewest. */
  readonly replicas: number
}

/** Waits until all brokers know the topics that were just made. */
async function shapesOf(admin: Admin, topics: string[]): Promise<Map<string, Shape>> {
  const deadline = Date.now() + APPEAR_MS
  for (;;) {
    let metadata: Awaited<ReturnType<Admin['fetchTopicMetadata']>> | undefined
    try {
      metadata = await admin.fetchTopicMetadata({ topics })
    } catch (error) {
      if (!isPassing(error) || Date.now() > deadline) throw error
    }
    const dark = metadata?.topics.find(({ partitions }) => partitions.some(({ leader }) => leader < 0))
    if (metadata && !dark) {
      return new Map(
        metadata.topics.map(({ name, partitions }) => {
          const replicas = Math.min(...partitions.map(each => each.replicas.length))
          return [name, { partitions: partitions.length, replicas }]
        }),
      )
    }
    if (dark && Date.now() > deadline) {
      const message = `topic ${dark.name} has a partition without a leader: the brokers that hold it are away`
      throw new GraspError('LOG_UNAVAILABLE', message)
    }
    await delay(50)
  }
}

async function check(
  admin: Admin,
  existing: readonly Wanted[],
  shapes: ReadonlyMap<string, Shape>,
  replication: number,
): Promise<void> {
  if (existing.length === 0) return
  const { resources } = await admin.describeConfigs({
    includeSynonyms: false,
    resources: existing.map(({ name, config }) => ({
      type: kafkajs.ConfigResourceTypes.TOPIC,
      name,
      configNames: Object.keys(config),
    })),
  })
  for (const topic of existing) {
    const { partitions, replicas } = shapes.get(topic.name)!
    if (topic.partitions !== undefined && partitions !== topic.partitions) {
      throw differs(topic, 'partitions', String(partitions), String(topic.partitions))
    }
    if (replication > 0 && replicas !== replication) {
      throw differs(topic, 'replication', String(replicas), String(replication))
    }
    const entries = resources.find(({ resourceName }) => resourceName === topic.name)?.configEntries ?? []
    for (const { configName, configValue } of entries) {
      const expected = topic.config[configName]
      if (expected === undefined || expected === configValue) continue
      // More than is needed does no harm.
      if (configName === 'max.message.bytes' && Number(configValue) >= Number(expected)) continue
      throw differs(topic, configName, configValue, expected)
    }
  }
}

function differs({ name }: Wanted, setting: string, found: string, expected: string): GraspError {
  const remedy =
    setting === 'partitions'
      ? `set log.partitions to ${found}, or start another run`
      : setting === 'replication'
        ? `set log.replication to ${found}, or move its replicas with Kafka's tools (kafka-reassign-partitions)`
        : `set it with Kafka's tools (kafka-configs --alter --topic ${name} --add-config ${setting}=${expected})`
  return new GraspError(
    'LOG_MISMATCH',
    `topic ${name}: ${setting} is ${found}, expected ${expected}; ${remedy}`,
  )
}

function absent(missing: readonly Wanted[], all: boolean): GraspError {
  const names = missing.map(({ name }) => name)
  const message = all
    ? `there is no topic ${names[0]}, nor any other of this run; check run and log.prefix, or make them with \`grasp topics create\``
    : `there is no topic ${names.join(', ')}; \`grasp topics create\` makes what is missing`
  return new GraspError('LOG_UNAVAILABLE', message)
}
