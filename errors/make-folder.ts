/**
 * Makes a folder and those above it that are missing. Node's own recursive mkdir never returns where a file system
 * says that an existing folder does not exist, as /proc does when it is asked for a new entry.
 */
import { existsSync, mkdirSync, rmdirSync, statSync } from 'node:fs'
import { dirname, resolve } from 'node:path'
import { describeError, GraspError } from './grasp-error.ts'

/** Returns the folders that it made, the outermost first. Errors: those of the file system. */
export function makeFolder(path: string): string[] {
  const missing: string[] = []
  const made: string[] = []
  for (let at = resolve(path); !existsSync(at) && dirname(at) !== at; at = dirname(at)) missing.unshift(at)
  for (const folder of missing) {
    try {
      mkdirSync(folder)
      made.push(folder)
    } catch (error) {
      // Another process may have been quicker.
      if (!isFolder(folder)) throw error
    }
  }
  if (!isFolder(path)) throw Object.assign(new Error(`${path} is a file`), { code: 'ENOTDIR' })
  return made
}

/** Takes back folders that were made for nothing; those that hold something by now stay. */
export function removeEmpty(made: readonly string[]): void {
  for (const folder of [...made].reverse()) {
    try {
      rmdirSync(folder)
    } catch {
      return
    }
  }
}

/** The same as makeFolder for one that the configuration or an argument (`name`) names. Errors: CONFIG_INVALID. */
export function makeNamedFolder(name: string, path: string): string[] {
  try {
    return makeFolder(path)
  } catch (cause) {
    throw new GraspError(
      'CONFIG_INVALID',
      `${name}: the folder ${path} cannot be made: ${reason(cause)}; name one on a disk that this user may write to`,
      { cause },
    )
  }
}

function reason(cause: unknown): string {
  const { code } = cause as { code?: unknown }
  if (code === 'ENOTDIR' || code === 'EEXIST') return 'a part of this path is a file'
  return describeError(cause)
}

function isFolder(path: string): boolean {
  return statSync(path, { throwIfNoEntry: false })?.isDirectory() ?? false
}
