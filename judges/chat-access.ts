/** Where a chat judge's server is and the key to it, checked before anything is sent. */
import { readFile } from 'node:fs/promises'
import { describeError, GraspError } from '../errors/grasp-error.ts'

/** The completions address under a base URL. Throws CONFIG_INVALID. */
export function endpointOf(url: string, allowInsecure: boolean): URL {
  const wrong = (problem: string) => new GraspError('CONFIG_INVALID', `judge.url ${problem}`)
  let parsed: URL
  try {
    parsed = new URL(url)
  } catch {
    throw wrong('is not a URL; expected for example https://host/v1')
  }
  // Never echoed: it holds a secret.
  if (parsed.username || parsed.password) throw wrong('must not contain a user or password; use judge.apiKey')
  const loopback = /^(localhost|127\.\d+\.\d+\.\d+|\[::1\])$/.test(parsed.hostname)
  if (parsed.protocol !== 'https:' && parsed.protocol !== 'http:')
    throw wrong(`is ${parsed.protocol}, expected https:`)
  if (parsed.protocol === 'http:' && !loopback && !allowInsecure) {
    throw wrong(
      `sends users' posts and the key in clear to ${parsed.host}; use https, or set judge.allowInsecure: true`,
    )
  }
  parsed.pathname = `${parsed.pathname.replace(/\/+$/, '')}/chat/completions`
  parsed.hash = ''
  return parsed
}

/** The key that a variable or a file holds. Throws CONFIG_INVALID, never with the key in its message. */
export async function readKey(source: { readonly env: string } | { readonly file: string }): Promise<string> {
  const wrong = (problem: string) => new GraspError('CONFIG_INVALID', `judge.apiKey: ${problem}`)
  let key: string | undefined
  let name: string
  if ('env' in source) {
    name = `environment variable ${source.env}`
    key = process.env[source.env]
    if (key === undefined) throw wrong(`the ${name} is not set`)
  } else {
    name = `file ${source.file}`
    key = await readFile(source.file, 'utf8').catch(error => {
      throw wrong(`cannot read the ${name}: ${describeError(error)}`)
    })
  }
  key = key.trim()
  if (!/^[\x21-\x7e]+$/.test(key))
    throw wrong(`the ${name} must hold one key: printable ASCII without spaces`)
  return key
}
