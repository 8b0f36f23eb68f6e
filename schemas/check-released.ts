/**
 * Fails when a present schema cannot read what a released version wrote: part of `npm run schemas:check`.
 * A folder may be named; it is the project's `schemas/` otherwise.
 */
import { fileURLToPath } from 'node:url'
import { unreadable } from './compatibility.ts'
import { loadSchemas, schemaDirectory } from './load.ts'
import { readReleases, releaseFile } from './released.ts'

/** What is wrong and what to do; undefined where every release can be read. */
export function releaseFault(directory: string): string | undefined {
  const present = loadSchemas(directory)
  for (const release of readReleases(directory)) {
    const faults = unreadable(release, present)
    if (faults.length === 0) continue
    const file = releaseFile(release.version, directory)
    return [
      `the schemas cannot read the records of version ${release.version} any more (${file}):`,
      ...faults.map(fault => `  ${fault}`),
      'Give new fields a default, and let types only widen. To give up reading that version, delete its file.',
    ].join('\n')
  }
  return undefined
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const fault = releaseFault(process.argv[2] ?? schemaDirectory())
  if (fault !== undefined) {
    console.error(fault)
    process.exitCode = 1
  }
}
