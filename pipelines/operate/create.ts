import type { TopicInfo } from '../../bus/port.ts'
import type { Config } from '../config/config.ts'
import { openRunLog } from '../run-log.ts'
import { presentTopics } from './open.ts'

export interface CreatedTopic extends TopicInfo {
  /** False where it was there before. */
  readonly created: boolean
}

/**
 * Makes the topics of a run that are not there yet, with the settings of the configuration. Errors: LOG_MISMATCH
 * where one is there with other settings.
 */
export async function createTopics(config: Config): Promise<CreatedTopic[]> {
  const before = new Set(await presentTopics(config))
  const log = await openRunLog(config)
  try {
    return (await log.topics()).map(info => ({ ...info, created: !before.has(info.topic) }))
  } finally {
    await log.close()
  }
}
