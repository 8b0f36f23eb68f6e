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
  if (parsed.username || parsed.password)
    throw wrong('must not contain a user or password; use judge.apiKeyEnv')
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

/** The key that a variable or a file holds, where either is named. Throws CONFIG_INVALID, never with the key. */
export async function readKey(
  env: string | undefined,
  file: string | undefined,
): Promise<string | undefined> {
  const wrong = (problem: string) => new GraspError('CONFIG_INVALID', problem)
  if (env !== undefined && file !== undefined) {
    throw wrong('judge.apiKeyEnv and judge.apiKeyFile are both set; keep one')
  }
  if (env !== undefined) {
    const key = process.env[env]
    if (key === undefined) throw wrong(`judge.apiKeyEnv: the environment variable ${env} is not set`)
    return checked(key, `judge.apiKeyEnv: the environment variable ${env}`)
  }
  if (file === undefined) return undefined
  const key = await readFile(file, 'utf8').catch(error => {
    throw wrong(`judge.apiKeyFile: cannot read ${file}: ${describeError(error)}`)
  })
  return checked(key, `judge.apiKeyFile: ${file}`)
}

function checked(text: string, source: string): string {
  const key = text.trim()
  if (/^[\x21-\x7e]+$/.test(key)) return key
  throw new GraspError('CONFIG_INVALID', `${source} must hold one key: printable ASCII without spaces`)
}
