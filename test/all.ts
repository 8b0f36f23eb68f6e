/**
 * Runs the tests: `npm test`, or `npm test -- bus credits` for those whose path holds one of the words. Further
 * options (`--test-name-pattern=…`) go to Node. It lists the files itself, since Node 20 knows no patterns.
 */
import { spawn } from 'node:child_process'
import { readdir } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

const folder = fileURLToPath(new URL('.', import.meta.url))
const options = process.argv.slice(2).filter(argument => argument.startsWith('-'))
const words = process.argv.slice(2).filter(argument => !argument.startsWith('-'))
const names = (await readdir(folder, { recursive: true })).filter(name => name.endsWith('.test.ts')).sort()
const files = names.filter(name => words.length === 0 || words.some(word => name.includes(word)))
if (files.length === 0) {
  process.stderr.write(`no test file matches ${words.join(' ')}\n`)
  process.exit(1)
}
const args = [
  '--import',
  'tsx',
  '--test',
  '--test-reporter=spec',
  '--test-concurrency=2',
  '--test-timeout=600000',
  ...options,
]
const paths = files.map(name => join(folder, name))
const child = spawn(process.execPath, [...args, ...paths], { stdio: 'inherit' })
child.on('close', (code, signal) => process.exit(signal === null ? (code ?? 1) : 1))
