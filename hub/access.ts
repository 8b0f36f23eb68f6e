/**
 * Where the hub is and who asks: HF_ENDPOINT, and the token of HF_TOKEN or of the file that Hugging Face's own tools
 * keep it in. The token goes to the endpoint's origin alone and into no message.
 */
import { readFile } from 'node:fs/promises'
import { homedir } from 'node:os'
import { join } from 'node:path'
import { describeError, GraspError } from '../errors/grasp-error.ts'

const HUB = 'https://huggingface.co'

export interface HubAccess {
  /** Without a slash at its end. */
  readonly endpoint: string
  readonly token?: string
}

/** @throws GraspError CONFIG_INVALID when a variable is wrong or the token's file cannot be read. */
export async function hubAccess(env: NodeJS.ProcessEnv): Promise<HubAccess> {
  const endpoint = readEndpoint(env.HF_ENDPOINT || HUB)
  const token = checkToken('HF_TOKEN', env.HF_TOKEN) ?? (await tokenOfFile(env))
  return token === undefined ? { endpoint } : { endpoint, token }
}

function readEndpoint(text: string): string {
  let url: URL
  try {
    url = new URL(text)
  } catch {
    throw invalid('HF_ENDPOINT is no URL; expected the address of a hub, such as https://huggingface.co')
  }
  if (url.protocol !== 'https:' && url.protocol !== 'http:') {
    throw invalid(`HF_ENDPOINT begins with ${url.protocol}; expected https: or http:`)
  }
  if (url.username || url.password || url.search || url.hash) {
    throw invalid('HF_ENDPOINT holds more than an address; expected no credentials, query or fragment in it')
  }
  return `${url.origin}${url.pathname.replace(/\/+$/, '')}`
}

async function tokenOfFile(env: NodeJS.ProcessEnv): Promise<string | undefined> {
  const home = env.HF_HOME || join(env.XDG_CACHE_HOME || join(homedir(), '.cache'), 'huggingface')
  const path = env.HF_TOKEN_PATH || join(home, 'token')
  try {
    return checkToken(path, await readFile(path, 'utf8'))
  } catch (cause) {
    if ((cause as NodeJS.ErrnoException).code === 'ENOENT') return undefined
    if (cause instanceof GraspError) throw cause
    throw new GraspError(
      'CONFIG_INVALID',
      `${path}, the hub's token, cannot be read: ${describeError(cause)}`,
      {
        cause,
      },
    )
  }
}

function checkToken(where: string, text: string | undefined): string | undefined {
  const token = text?.trim() ?? ''
  if (token === '') return undefined
  if (!/^[\x21-\x7e]+$/.test(token))
    throw invalid(`${where} holds no token: expected one line without spaces`)
  return token
}

function invalid(message: string): GraspError {
  return new GraspError('CONFIG_INVALID', message)
}
