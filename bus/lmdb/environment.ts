/**
 * Opens the LMDB environment of a run: one folder, one database for what the log knows about itself
 * (`meta`) and one for each partition of a topic (offset → entry).
 *
 * Commits are synced before they become visible (`overlappingSync: false`): a reader never acts on a record
 * that a power cut could still take back. lmdb-js grows the memory map by itself. Transactions are made one by
 * one (`eventTurnBatching: false`), because a failing batch of lmdb-js also rejects a promise that nobody holds.
 */
import { type Database, open, type RootDatabase } from 'lmdb'
import { GraspError } from '../../errors/grasp-error.ts'
import { TOPICS, type Topic } from '../../schemas/types.ts'
import type { Codec } from '../codec.ts'
import { logFault } from './faults.ts'
import { prepareFolder } from './folder.ts'

/** Raised when the layout changes in a way that older programs would misread. */
const FORMAT = 1
/** LMDB's limit is set on opening; it bounds the partitions of all topics together. */
const MAX_DATABASES = 1024
const MAX_PARTITIONS = 64

/** A partition: offset → entry. */
export type RecordDatabase = Database<Uint8Array, number>

export interface Environment {
  readonly path: string
  readonly root: RootDatabase
  readonly meta: Database<unknown, (string | number)[]>
  /** The databases of each topic's partitions. */
  readonly records: ReadonlyMap<Topic, readonly RecordDatabase[]>
}

export interface EnvironmentOptions {
  /** The run's folder. */
  readonly path: string
  readonly partitions: Partial<Record<Topic, number>>
  readonly readOnly: boolean
  readonly schemas: Codec['schemas']
}

/**
 * Errors: LOG_UNAVAILABLE for a path that cannot be used; LOG_MISMATCH for a log of another format version,
 * with other partition counts, or not made by this program.
 */
export function openEnvironment(options: EnvironmentOptions): Environment {
  const { path, readOnly } = options
  prepareFolder(path, readOnly)
  let root: RootDatabase | undefined
  try {
    root = open({
      path,
      noSubdir: false,
      maxDbs: MAX_DATABASES,
      overlappingSync: false,
      eventTurnBatching: false,
      readOnly,
    })
    return readOnly ? openForReading(root, options) : openForWriting(root, options)
  } catch (cause) {
    root?.close()
    throw logFault(path, 'open', cause)
  }
}

function openForReading(root: RootDatabase, { path }: EnvironmentOptions): Environment {
  const meta = root.openDB<unknown, (string | number)[]>({ name: 'meta', encoding: 'json' })
  if (!meta) throw foreign(path)
  checkFormat(path, meta.get(['format']))
  const records = new Map<Topic, RecordDatabase[]>()
  for (const topic of TOPICS) {
    const partitions = meta.get(['partitions', topic])
    if (typeof partitions === 'number') records.set(topic, openPartitions(root, topic, partitions))
  }
  return { path, root, meta, records }
}

function openForWriting(root: RootDatabase, options: EnvironmentOptions): Environment {
  const { path, schemas } = options
  const names = [...root.getKeys()]
  if (names.length > 0 && !names.includes('meta')) throw foreign(path)
  // One transaction, so that two processes that start at once agree on what they make.
  return root.transactionSync(() => {
    const meta = root.openDB<unknown, (string | number)[]>({ name: 'meta', encoding: 'json' })
    const format = meta.get(['format'])
    if (format === undefined) meta.put(['format'], FORMAT)
    else checkFormat(path, format)
    const records = new Map<Topic, RecordDatabase[]>()
    for (const topic of TOPICS) {
      const partitions = settlePartitions(meta, topic, options)
      records.set(topic, openPartitions(root, topic, partitions))
    }
    for (const { fingerprint, json } of schemas.values()) {
      if (!meta.doesExist(['schema', fingerprint])) meta.put(['schema', fingerprint], json)
    }
    return { path, root, meta, records }
  })
}

function settlePartitions(meta: Environment['meta'], topic: Topic, options: EnvironmentOptions): number {
  const wanted = options.partitions[topic]
  const valid = Number.isInteger(wanted) && wanted! >= 1 && wanted! <= MAX_PARTITIONS
  if (wanted !== undefined && !valid) {
    throw new GraspError(
      'CONFIG_INVALID',
      `topic ${topic}: partitions must be a whole number from 1 to ${MAX_PARTITIONS}, got ${wanted}`,
    )
  }
  const stored = meta.get(['partitions', topic])
  if (stored === undefined) {
    meta.put(['partitions', topic], wanted ?? 1)
    return wanted ?? 1
  }
  if (wanted !== undefined && stored !== wanted) {
    throw new GraspError(
      'LOG_MISMATCH',
      `the log in ${options.path} has ${stored} partition(s) of ${topic}, the configuration asks for ${wanted}: ` +
        'a log keeps its partitions; set them back or start another run',
    )
  }
  return Number(stored)
}

function openPartitions(root: RootDatabase, topic: Topic, partitions: number): RecordDatabase[] {
  return Array.from({ length: partitions }, (_, partition) =>
    root.openDB<Uint8Array, number>({ name: `${topic}/${partition}`, encoding: 'binary' }),
  )
}

function checkFormat(path: string, format: unknown): void {
  if (format === FORMAT) return
  throw new GraspError(
    'LOG_MISMATCH',
    `the log in ${path} has format version ${String(format)}, this program reads and writes version ${FORMAT}: ` +
      'use the program version that made it, or set log.path to another folder',
  )
}

function foreign(path: string): GraspError {
  return new GraspError(
    'LOG_MISMATCH',
    `${path} holds an LMDB database that is not a log of this program; set log.path to another folder`,
  )
}
