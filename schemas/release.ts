/**
 * Writes the schemas of the version that is about to be released, `released/<version>.json`: `npm run
 * schemas:release`. From then on every change must be able to read them. A version that is there already is left
 * alone unless it is the same; `--replace` is for one that nobody has got yet.
 */
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { dirname } from 'node:path'
import { fileURLToPath } from 'node:url'
import { canonicalForm } from './canonical.ts'
import { type AvroNode, loadSchemas, schemaDirectory } from './load.ts'
import { releaseFile } from './released.ts'

/** The text of the file. */
function releaseText(version: string, schemas: ReadonlyMap<string, AvroNode>): string {
  const lines = [...schemas].map(
    ([topic, schema]) => `    ${JSON.stringify(topic)}: ${canonicalForm(schema)}`,
  )
  return `{\n  "version": ${JSON.stringify(version)},\n  "schemas": {\n${lines.join(',\n')}\n  }\n}\n`
}

/** Writes the file; says why not, where it may not. */
export function release(directory: string, version: string, replace = false): string | undefined {
  if (!/^\d+\.\d+\.\d+$/.test(version)) {
    return `${version} is not a version that is released; expected three numbers, such as 0.1.0`
  }
  const text = releaseText(version, loadSchemas(directory))
  const path = releaseFile(version, directory)
  if (!replace && existsSync(path) && readFileSync(path, 'utf8') !== text) {
    return `${path}: version ${version} was released with other schemas; raise the version in package.json`
  }
  mkdirSync(dirname(path), { recursive: true })
  writeFileSync(path, text)
  return undefined
}

function packageVersion(): string {
  const file = new URL('../package.json', import.meta.url)
  return (JSON.parse(readFileSync(file, 'utf8')) as { version: string }).version
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const fault = release(schemaDirectory(), packageVersion(), process.argv.includes('--replace'))
  if (fault !== undefined) {
    console.error(fault)
    process.exitCode = 1
  }
}
