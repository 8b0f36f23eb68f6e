/** What the Kafka adapter needs of a configuration: secrets and certificates read, the registry's codec made. */
import { Names } from '../bus/kafka/names.ts'
import type { KafkaLogOptions } from '../bus/kafka/options.ts'
import { createRegistryCodec } from '../bus/registry/codec.ts'
import { Registry } from '../bus/registry/registry.ts'
import { GraspError } from '../errors/grasp-error.ts'
import { TOPICS } from '../schemas/types.ts'
import type { Config } from './config/config.ts'
import { tlsEnabled } from './config/log.ts'
import { readCertificates, readPassword } from './secrets.ts'

type LogSection = Config['log']

/** Nothing is connected to. Errors: CONFIG_INVALID naming the key, never with a secret. */
export async function kafkaSettings(config: Config, env = process.env): Promise<KafkaLogOptions> {
  const { run, log } = config
  if (log.brokers === undefined) throw new GraspError('CONFIG_INVALID', 'log.brokers is missing')
  const { prefix, clientId, partitions, maxMessageBytes, compression, timeouts } = log
  const ssl = tlsEnabled(log.tls) ? await readCertificates('log.tls', log.tls) : undefined
  const sasl = log.sasl && (await saslOf(log.sasl, env))
  const registry = await openRegistry(config, env)
  const names = new Names(prefix, run)
  return {
    brokers: log.brokers,
    run,
    prefix,
    clientId,
    partitions: Object.fromEntries(TOPICS.map(topic => [topic, partitions])),
    maxMessageBytes,
    compression,
    timeouts,
    ...(log.replication !== undefined && { replication: log.replication }),
    ...(log.retentionHours !== undefined && { retentionHours: log.retentionHours }),
    ...(ssl && { ssl }),
    ...(sasl && { sasl }),
    ...(registry && { codec: createRegistryCodec({ registry, topicName: topic => names.topic(topic) }) }),
  }
}

async function saslOf(
  sasl: NonNullable<LogSection['sasl']>,
  env: NodeJS.ProcessEnv,
): Promise<NonNullable<KafkaLogOptions['sasl']>> {
  const { mechanism, username } = sasl
  return { mechanism, username, password: await readPassword('log.sasl', sasl, env) }
}

/** The configured schema registry. Errors: CONFIG_INVALID as above. */
export async function openRegistry(config: Config, env = process.env): Promise<Registry | undefined> {
  const settings = config.log.registry
  if (config.log.kind !== 'kafka' || settings === undefined) return undefined
  const { url, username, timeoutMs, waitMs } = settings
  const tls = await readCertificates('log.registry.tls', settings.tls)
  const password = username === undefined ? undefined : await readPassword('log.registry', settings, env)
  return new Registry({
    url,
    timeoutMs,
    waitMs,
    tls,
    ...(username !== undefined && { username }),
    ...(password !== undefined && { password }),
  })
}
