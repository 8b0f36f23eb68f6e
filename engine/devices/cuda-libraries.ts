/** Where onnxruntime's CUDA provider would have to be, and what keeps it from loading. */
import { existsSync, readdirSync } from 'node:fs'
import { createRequire } from 'node:module'
import { basename, dirname, join } from 'node:path'

const SUFFIX: Partial<Record<NodeJS.Platform, readonly [prefix: string, suffix: string]>> = {
  linux: ['lib', '.so'],
  win32: ['', '.dll'],
}

/** The provider's library and the one that it is loaded through; undefined where there is none for the platform. */
export function cudaLibraries():
  | { readonly folder: string; readonly missing: readonly string[] }
  | undefined {
  const affixes = SUFFIX[process.platform]
  const folder = bindingFolder()
  if (!affixes || folder === undefined) return undefined
  const [prefix, suffix] = affixes
  const names = ['cuda', 'shared'].map(part => `${prefix}onnxruntime_providers_${part}${suffix}`)
  return { folder, missing: names.filter(name => !existsSync(join(folder, name))) }
}

/** Of the native module of onnxruntime-node. */
function bindingFolder(): string | undefined {
  const entry = createRequire(import.meta.url).resolve('onnxruntime-node')
  const bin = join(dirname(dirname(entry)), 'bin')
  const versions = existsSync(bin) ? readdirSync(bin) : []
  return versions
    .map(version => join(bin, version, process.platform, process.arch))
    .find(folder => existsSync(join(folder, 'onnxruntime_binding.node')))
}

/** The library that could not be found or loaded, and why, as the system's loader said it. */
export function readLoadFailure(words: string): string | undefined {
  const why = /Failed to load library .+? with error: (.+)/.exec(words)?.[1]?.trim()
  if (why === undefined) return undefined
  const library = /^(\S+): cannot open shared object file/.exec(why)?.[1]
  return library === undefined ? why : `${basename(library)} is not found by the system's loader`
}
