import type { Log } from '../bus/port.ts'
import type { Config } from './config/config.ts'

const LETTERS = '`grasp deadletters list` tells why'

/** Why a run that is through has trained on no response; undefined where it has. */
export async function whyNothingTrained(log: Log, { validation }: Config): Promise<string | undefined> {
  let updates = 0
  for await (const { value } of log.scan('updates')) {
    if (value === undefined) continue
    if (value.responses > 0) return undefined
    updates++
  }
  if (updates > 0) return `no response could be trained on (${LETTERS})`
  let validated = 0
  for await (const { value } of log.scan('validations')) {
    if (value === undefined) continue
    if (value.score !== null) return `no question reached validation.tau = ${validation.tau}`
    validated++
  }
  return validated > 0
    ? 'no answer of the teacher could be scored (`grasp topics tail validations` tells why)'
    : `no question could be validated (${LETTERS})`
}
