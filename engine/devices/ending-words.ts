import type { Ending } from './run-apart.ts'

/** How a trial ended, in words; undefined where it came to its end. */
export function describeEnding(ending: Ending): string | undefined {
  switch (ending.kind) {
    case 'done':
      return undefined
    case 'failed':
      return withoutPlaces(ending.why)
    case 'crashed':
      return `the process that tried it ${ending.why} while ${ending.stage}, a fault in native code`
    case 'hung':
      return `no answer within ${ending.seconds} s while ${ending.stage}; the process that tried it was ended`
  }
}

/** Native messages name the source lines and signatures that they come from. */
function withoutPlaces(text: string): string {
  return text
    .replace(/^\S+\.cc:\d+ .* was false\. /s, '')
    .replace(/\s+/g, ' ')
    .trim()
}
