/**
 * What the hub means by an answer that is no success. It says why in X-Error-Code and X-Error-Message; for what may
 * not be seen it also answers 401 or 404, so that nobody learns what exists.
 */
import { GraspError } from '../errors/grasp-error.ts'
import type { HubAccess } from './access.ts'
import type { Repository } from './repository.ts'

export function refusal(
  response: Response,
  url: URL,
  { name, revision }: Repository,
  access: HubAccess,
): GraspError {
  const { status, headers } = response
  const code = headers.get('x-error-code')
  const said = plain(headers.get('x-error-message') ?? '')
  const page = `${access.endpoint}/${name}`
  const ownToken =
    access.token === undefined
      ? 'set HF_TOKEN to a token of an account that may read it'
      : 'the token that was sent is not of an account that may read it'
  if (code === 'GatedRepo') {
    return failed(`${name} is gated: ask for access on ${page}, and then ${ownToken}`)
  }
  if (code === 'RevisionNotFound') return failed(`${name} has no branch, tag or commit ${revision}`)
  if (code === 'EntryNotFound') return failed(`${name} has no file ${decodeURI(url.pathname)} at ${revision}`)
  if (status === 401 && access.token !== undefined && /credentials|token/i.test(said)) {
    return failed(
      `${url.host} refused the token (${said}); make a new one, or unset HF_TOKEN for public models`,
    )
  }
  if (code === 'RepoNotFound' || status === 401 || status === 404) {
    return failed(
      `${name} is not on ${url.host}, or is private. Check the name; if it is private, ${ownToken}`,
    )
  }
  if (status === 403) return failed(`${url.host} refuses ${name}${said && ` (${said})`}: ${ownToken}`)
  return failed(`${url.host} answered ${status}${said && ` (${said})`} to ${name}`)
}

/** The server's words, on one line and not too many. */
function plain(text: string): string {
  return text.replace(/[\x00-\x1f\x7f]+/g, ' ').slice(0, 200)
}

function failed(message: string): GraspError {
  return new GraspError('HUB_FAILED', message)
}
