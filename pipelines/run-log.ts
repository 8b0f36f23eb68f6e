/** The log of a run, as its configuration names it; apart from the models, so that looking into it is quick. */
import { openLmdbLog } from '../bus/lmdb/log.ts'
import type { Log } from '../bus/port.ts'
import type { ModelInfo } from '../engine/port.ts'
import { GraspError } from '../errors/grasp-error.ts'
import { TOPICS } from '../schemas/types.ts'
import type { Config } from './config/config.ts'
import { configIdentity, differences, type Identity } from './config/identity.ts'

/** A broker that restarts is back in seconds, and a wrong address is to be told in seconds. */
export const START_PATIENCE_MS = 10_000

export interface OpenOptions {
  readonly readOnly?: boolean
  /** How long brokers may be away, milliseconds. */
  readonly patience?: number
  /** Ends the waiting for them. */
  readonly stopped?: () => boolean
}

export async function openRunLog(
  config: Config,
  { readOnly = false, patience = START_PATIENCE_MS, stopped = () => false }: OpenOptions = {},
): Promise<Log> {
  const { kind, path, partitions } = config.log
  if (kind === 'kafka') {
    // The client is loaded by those who need it.
    const { kafkaSettings } = await import('./kafka-settings.ts')
    const { openKafkaLog } = await import('../bus/kafka/log.ts')
    const { patiently } = await import('../bus/kafka/retrying.ts')
    const settings = { ...(await kafkaSettings(config)), readOnly }
    return patiently(() => openKafkaLog(settings), { patience, stopped })
  }
  return openLmdbLog({
    path,
    run: config.run,
    partitions: Object.fromEntries(TOPICS.map(topic => [topic, partitions])),
    readOnly,
  })
}

/** Where the log is, for messages. */
export function logPlace({ log, run }: Config): string {
  return log.kind === 'kafka' ? `${log.brokers?.join(', ')} (run ${run})` : log.path
}

export interface ClaimedLog {
  readonly log: Log
  /** As the log remembers it: keys that came with a newer version are not in it. */
  readonly identity: Identity
}

/** The log of a run, which from now on belongs to this configuration. Throws LOG_MISMATCH. */
export async function openClaimedLog(
  config: Config,
  options?: Omit<OpenOptions, 'readOnly'>,
): Promise<ClaimedLog> {
  const own = await configIdentity(config)
  const log = await openRunLog(config, options)
  try {
    return { log, identity: await claimLog(log, config, own) }
  } catch (error) {
    await log.close()
    throw error
  }
}

/** A log holds one run of one configuration: mixing two would make neither of them reproducible. */
async function claimLog(log: Log, config: Config, identity: Identity): Promise<Identity> {
  const note = await log.note('identity')
  if (note === undefined) {
    await log.setNote('identity', JSON.stringify(identity))
    return identity
  }
  const before = JSON.parse(note) as Identity
  const changed = differences(before, identity)
  if (changed.length === 0) return before
  const questions = (await log.topics()).find(({ topic }) => topic === 'questions')
  if ((questions?.ends ?? []).every(end => end === 0)) {
    // Nothing came of the earlier try (a data file was wrong, say), so nothing can be mixed.
    await log.setNote('identity', JSON.stringify(identity))
    return identity
  }
  throw new GraspError(
    'LOG_MISMATCH',
    `the log in ${logPlace(config)} was written by another configuration (${changed.join('; ')}); ` +
      'use the old settings to go on with it, or start another run with --set run=NAME',
  )
}

/** A log also belongs to one model: its samples and slices are that model's. Throws LOG_MISMATCH. */
export async function claimModel(log: Log, config: Config, info: ModelInfo): Promise<void> {
  const { weightsHash, tokenizerHash, templateHash } = info
  const own = JSON.stringify({ weightsHash, tokenizerHash, templateHash })
  const before = await log.note('model')
  if (before === undefined) await log.setNote('model', own)
  else if (before !== own) {
    throw new GraspError(
      'LOG_MISMATCH',
      `the log in ${logPlace(config)} was written with another model than the one in ${config.model.path}; ` +
        'use the old model to go on with it, or start another run with --set run=NAME',
    )
  }
}
