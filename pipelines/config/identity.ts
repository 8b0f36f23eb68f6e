/**
 * What of a configuration decides the results of a run: two runs with the same identity, model weights and
 * engine give the same weights hash. A log remembers the identity that wrote it, so that another one is
 * refused with the keys that differ.
 */
import { createHash } from 'node:crypto'
import { createReadStream } from 'node:fs'
import { pipeline } from 'node:stream/promises'
import { describeError, GraspError } from '../../errors/grasp-error.ts'
import type { Config } from './config.ts'
import { show } from './problems.ts'
import { shapeAt, walk } from './shape.ts'

/** Key path → value; a file counts by its content, not by its place. */
export type Identity = Readonly<Record<string, unknown>>

/** Where things are, how fast they go, how often they are saved: no result depends on these. */
const IRRELEVANT: readonly string[] = [
  'run',
  'log',
  'output',
  'model.path',
  'model.device',
  'model.threads',
  // On the CPU a response is the same, to the bit, whatever is decoded beside it. On a device it may decide last bits, as
  // the device does.
  'model.sequencesPerPass',
  'engine',
  'data.maxPostBytes',
  'judge.url',
  'judge.apiKeyEnv',
  'judge.apiKeyFile',
  'judge.allowInsecure',
  'judge.timeoutMs',
  'judge.concurrency',
  'judge.retries',
  'training.checkpointEvery',
  'credits',
]

const isRelevant = (name: string) => !IRRELEVANT.some(key => name === key || name.startsWith(`${key}.`))

async function contentHash(key: string, file: string): Promise<string> {
  const hash = createHash('sha256')
  try {
    await pipeline(createReadStream(file), hash)
  } catch (error) {
    const code = (error as NodeJS.ErrnoException).code
    const what =
      code === 'ENOENT'
        ? 'there is no such file'
        : code === 'EISDIR'
          ? 'is a folder, expected a file'
          : `cannot be read: ${describeError(error)}`
    throw new GraspError('CONFIG_INVALID', `${key}: ${file}: ${what}`, { cause: error })
  }
  return `sha256:${hash.digest('hex')}`
}

/** @throws GraspError CONFIG_INVALID where a file that counts cannot be read. */
export async function configIdentity(config: Config): Promise<Identity> {
  const identity: Record<string, unknown> = {}
  for (const [path] of walk()) {
    const name = path.join('.')
    if (!isRelevant(name)) continue
    const shape = shapeAt(path, config)
    const value = path.reduce<unknown>(
      (section, key) => (section as Record<string, unknown> | undefined)?.[key],
      config,
    )
    if (shape === undefined || shape.type === 'object' || value === undefined) continue
    // The embedding model is a folder: the retriever's own hash, in every context, covers it.
    const isFile = shape.format === 'path' && name !== 'retrieval.dense.model'
    identity[name] = isFile ? await contentHash(name, value as string) : value
  }
  return identity
}

/** A short name for an identity. */
export function identityHash(identity: Identity): string {
  const sorted = Object.fromEntries(Object.entries(identity).sort(([a], [b]) => (a < b ? -1 : 1)))
  return createHash('sha256').update(JSON.stringify(sorted)).digest('hex')
}

/** sha256 over what decides the results. */
export async function configHash(config: Config): Promise<string> {
  return identityHash(await configIdentity(config))
}

const same = (a: unknown, b: unknown) => JSON.stringify(a) === JSON.stringify(b)

/**
 * The keys in which two identities differ, in words: `training.seed was 1 and is 2`. A key that the earlier one
 * does not know and that has its default now is one that came with a newer version: it changes nothing. Nor do those
 * that an older version took to be relevant.
 */
export function differences(before: Identity, after: Identity): string[] {
  const keys = [...new Set([...Object.keys(before), ...Object.keys(after)])].filter(isRelevant).sort()
  const defaults = new Map([...walk()].map(([path, shape]) => [path.join('.'), shape.default]))
  const word = (value: unknown) => (value === undefined ? 'not set' : show(value))
  return keys
    .filter(key => !same(before[key], after[key]))
    .filter(key => before[key] !== undefined || !same(after[key], defaults.get(key)))
    .map(key => {
      const [was, is] = [before[key], after[key]]
      const content = [was, is].every(value => typeof value === 'string' && value.startsWith('sha256:'))
      return content ? `${key} has another content` : `${key} was ${word(was)} and is ${word(is)}`
    })
}
