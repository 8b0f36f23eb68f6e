import { existsSync, readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'

/** The package's version. Its sources lie beside package.json, what is built of them one folder further down. */
export function packageVersion(): string {
  const places = ['../package.json', '../../package.json'].map(path =>
    fileURLToPath(new URL(path, import.meta.url)),
  )
  const file = places.find(existsSync)
  return file === undefined
    ? 'unknown'
    : (JSON.parse(readFileSync(file, 'utf8')) as { version: string }).version
}
