import type { Log, TopicInfo } from '../../bus/port.ts'
import type { Config } from '../config/config.ts'
import { openRunLog } from '../run-log.ts'

/** The log of a run for changing it, which must be there: a mistyped name makes no new run. */
export async function openExistingLog(config: Config): Promise<Log> {
  const looking = await openRunLog(config, { readOnly: true })
  await looking.close()
  return openRunLog(config)
}

/** What is in the log of a run, and nothing where there is no such log. */
export async function presentTopics(config: Config): Promise<TopicInfo[]> {
  const log = await openRunLog(config, { readOnly: true }).catch((error: { code?: string }) => {
    if (error.code === 'LOG_UNAVAILABLE') return undefined
    throw error
  })
  try {
    return (await log?.topics()) ?? []
  } finally {
    await log?.close()
  }
}
