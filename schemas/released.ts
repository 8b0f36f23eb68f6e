/**
 * The schemas of released versions, `released/<version>.json`: each topic's in Parsing Canonical Form. They let a
 * reader decode what those versions wrote, and are what `npm run schemas:check` holds a changed schema against.
 */
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describeError, GraspError } from '../errors/grasp-error.ts'
import { fingerprint, fingerprintText } from './fingerprint.ts'
import { type AvroNode, schemaDirectory } from './load.ts'

export interface Release {
  readonly version: string
  /** Topic → its self-contained schema. */
  readonly schemas: Readonly<Record<string, AvroNode>>
}

const FILE = /^(\d+)\.(\d+)\.(\d+)\.json$/

export function releaseFile(version: string, directory = schemaDirectory()): string {
  return join(directory, 'released', `${version}.json`)
}

/** All of them, oldest version first. Errors: DATA_INVALID naming the file. */
export function readReleases(directory = schemaDirectory()): Release[] {
  const folder = join(directory, 'released')
  if (!existsSync(folder)) return []
  const versions = readdirSync(folder).flatMap(file => {
    const match = FILE.exec(file)
    return match ? [match.slice(1).map(Number)] : []
  })
  versions.sort((a, b) => a[0]! - b[0]! || a[1]! - b[1]! || a[2]! - b[2]!)
  return versions.map(parts => readRelease(parts.join('.'), directory))
}

function readRelease(version: string, directory: string): Release {
  const path = releaseFile(version, directory)
  try {
    const release = JSON.parse(readFileSync(path, 'utf8')) as Release
    if (release.version !== version) throw new Error(`it says that it is of version ${release.version}`)
    return release
  } catch (cause) {
    throw new GraspError('DATA_INVALID', `${path}: ${describeError(cause)}`, { cause })
  }
}

let known: ReadonlyMap<string, string> | undefined

/** The schema (JSON) with this fingerprint (16 hex digits), of any released version. */
export function releasedSchema(id: string): string | undefined {
  known ??= new Map(
    readReleases().flatMap(({ schemas }) =>
      Object.values(schemas).map(schema => [fingerprintText(fingerprint(schema)), JSON.stringify(schema)]),
    ),
  )
  return known.get(id)
}
