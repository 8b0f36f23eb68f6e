import type { Log } from '../../bus/port.ts'
import type { Topic } from '../../schemas/types.ts'
import type { Config } from '../config/config.ts'
import { openRunLog, START_PATIENCE_MS } from '../run-log.ts'

/** The log of a run for changing it, which must be there: a mistyped name makes no new run. */
export async function openExistingLog(config: Config): Promise<Log> {
  const looking = await openRunLog(config, { readOnly: true })
  await looking.close()
  return openRunLog(config)
}

/** The topics that a run has by now. */
export async function presentTopics(config: Config): Promise<Topic[]> {
  if (config.log.kind === 'kafka') {
    const { kafkaSettings } = await import('../kafka-settings.ts')
    const { presentKafkaTopics } = await import('../../bus/kafka/present.ts')
    const { patiently } = await import('../../bus/kafka/retrying.ts')
    const settings = await kafkaSettings(config)
    return patiently(() => presentKafkaTopics(settings), { patience: START_PATIENCE_MS })
  }
  const log = await openRunLog(config, { readOnly: true }).catch((error: { code?: string }) => {
    if (error.code === 'LOG_UNAVAILABLE') return undefined
    throw error
  })
  try {
    return ((await log?.topics()) ?? []).map(({ topic }) => topic)
  } finally {
    await log?.close()
  }
}
