/** Whether the Kafka cluster and the schema registry of a configuration can be used. */
import { Client } from '../../bus/kafka/client.ts'
import type { Config } from '../../pipelines/config/config.ts'
import { kafkaSettings, openRegistry } from '../../pipelines/kafka-settings.ts'
import { type Check, check } from './check.ts'

export async function kafkaChecks(config: Config): Promise<Check[]> {
  const { log } = config
  const checks = [await check('log.brokers', () => describeBrokers(config))]
  if (log.registry) checks.push(await check('log.registry', () => describeRegistry(config)))
  return checks
}

/** Logs in; what is wrong with settings and secrets is told first. */
async function describeBrokers(config: Config): Promise<string> {
  const settings = await kafkaSettings(config)
  await new Client(settings).firstContact()
  const { mechanism } = settings.sasl ?? {}
  const parts = [settings.ssl === undefined ? 'without TLS' : 'TLS', mechanism ?? 'without login']
  return `${settings.brokers.join(', ')} answer (${parts.join(', ')})`
}

async function describeRegistry(config: Config): Promise<string> {
  const registry = await openRegistry(config)
  await registry?.check()
  return `${registry?.url} answers`
}
