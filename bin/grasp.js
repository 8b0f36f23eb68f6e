#!/usr/bin/env node
// The launcher: plain JavaScript that any Node parses, so that an old one gets a clear message. It runs the
// TypeScript sources where they lie beside it (a checkout), else what `npm run build` made of them (a package).
import { existsSync } from 'node:fs'
import { fileURLToPath } from 'node:url'

const [major, minor] = process.versions.node.split('.').map(Number)
if (major < 20 || (major === 20 && minor < 19)) {
  process.stderr.write(
    `error NODE_TOO_OLD: grasp needs Node 20.19 or newer, this is ${process.versions.node}\n`,
  )
  process.exit(1)
}

// Programs are still being read: a Ctrl-C ends that, with a word. Whoever listens next, the command, takes over.
const tooEarly = () => {
  process.stderr.write('interrupted before anything was begun\n')
  process.exit(130)
}
const takenOver = event => {
  if (event !== 'SIGINT') return
  process.off('newListener', takenOver)
  // Not before the other listens: without a listener a signal kills.
  queueMicrotask(() => {
    for (const signal of ['SIGINT', 'SIGTERM']) process.off(signal, tooEarly)
  })
}
for (const signal of ['SIGINT', 'SIGTERM']) process.on(signal, tooEarly)
process.on('newListener', takenOver)

const source = new URL('../cli/main.ts', import.meta.url)
const built = new URL('../dist/cli/main.js', import.meta.url)
if (existsSync(fileURLToPath(source))) {
  const { register } = await import('tsx/esm/api').catch(() => {
    process.stderr.write(
      'error NOT_INSTALLED: the sources need their development dependencies; run `npm ci` in this checkout\n',
    )
    process.exit(1)
  })
  register()
  const { main } = await import(source.href)
  await main(process.argv)
} else {
  const { main } = await import(built.href)
  await main(process.argv)
}
