import { GraspError } from '../../errors/grasp-error.ts'
import type { Session } from '../session.ts'

export async function ingestCommand(session: Session): Promise<void> {
  const config = await session.config()
  const { openClaimedLog } = await import('../../pipelines/run-log.ts')
  const { ingest } = await import('../../pipelines/ingest.ts')
  const { logger, progress } = session.hooks
  const signal = session.askToStop('stopping after this item')
  progress({ kind: 'phase', name: 'reading data' })
  const { log } = await openClaimedLog(config)
  try {
    const ingested = await ingest({ config, log, logger, progress }, signal)
    if (!ingested.complete) {
      throw new GraspError(
        'INTERRUPTED',
        `ingest of run "${config.run}" was stopped; the same command goes on with it`,
      )
    }
    const { questions, deadletters } = ingested
    session.result(
      { run: config.run, questions, deadletters },
      `${questions} questions in the log of run ${config.run}, ${deadletters} items left out` +
        `${deadletters > 0 ? ' (see `grasp deadletters list`)' : ''}\n`,
    )
  } finally {
    await log.close()
  }
}
