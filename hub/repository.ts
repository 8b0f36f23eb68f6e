/** A model's repository on the hub, at a branch, tag or commit. */
import { GraspError } from '../errors/grasp-error.ts'

export interface Repository {
  /** `ORG/NAME`; a few old ones have no organisation. */
  readonly name: string
  readonly revision: string
}

/** @throws GraspError CONFIG_INVALID when the name or the revision cannot be one. */
export function repository(name: string, revision: string): Repository {
  const parts = name.split('/')
  const isPart = (part: string) => /^[A-Za-z0-9_](?:[A-Za-z0-9._-]{0,94}[A-Za-z0-9_-])?$/.test(part)
  if (parts.length > 2 || !parts.every(isPart) || /\.\.|--/.test(name)) {
    throw new GraspError(
      'CONFIG_INVALID',
      `${JSON.stringify(name)} is no repository; expected ORG/NAME, such as HuggingFaceTB/SmolLM2-135M-Instruct`,
    )
  }
  if (!/^[^\s\x00-\x1f\x7f]{1,255}$/.test(revision) || revision.includes('..')) {
    throw new GraspError(
      'CONFIG_INVALID',
      `${JSON.stringify(revision)} is no revision; expected a branch, a tag or a commit`,
    )
  }
  return { name, revision }
}
