import { existsSync } from 'node:fs'
import type { Check } from '../doctor/check.ts'
import { machineChecks } from '../doctor/machine.ts'
import type { CommonOptions, Session } from '../session.ts'

export async function doctor(session: Session, options: CommonOptions): Promise<void> {
  const checks: Check[] = await machineChecks()
  const wanted = options.config !== undefined || (options.set?.length ?? 0) > 0 || existsSync('grasp.yaml')
  if (wanted) {
    const { configurationChecks } = await import('../doctor/configuration.ts')
    checks.push(...(await configurationChecks(() => session.config())))
  }
  const failed = checks.filter(({ ok }) => !ok).length
  const width = Math.max(...checks.map(({ name }) => name.length))
  const lines = checks.map(
    ({ name, ok, detail }) => `${ok ? 'ok  ' : 'FAIL'}  ${name.padEnd(width)}  ${detail}`,
  )
  if (!wanted) lines.push('', 'No configuration checked: name one with --config FILE.')
  session.result(
    { ok: failed === 0, checks },
    `${lines.join('\n')}\n${failed === 0 ? '' : `\n${failed} of ${checks.length} checks failed\n`}`,
  )
  if (failed > 0) session.fail()
}
