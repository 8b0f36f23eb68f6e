import { writeFileSync } from 'node:fs'
import { describeError, GraspError } from '../../errors/grasp-error.ts'
import { configTemplate } from '../../pipelines/config/template.ts'
import type { Session } from '../session.ts'

export async function init(
  session: Session,
  { force = false }: { force?: boolean },
  file = 'grasp.yaml',
): Promise<void> {
  try {
    writeFileSync(file, configTemplate(), { flag: force ? 'w' : 'wx' })
  } catch (error) {
    const exists = (error as NodeJS.ErrnoException).code === 'EEXIST'
    throw new GraspError(
      'CONFIG_INVALID',
      exists
        ? `${file} is already there; --force overwrites it`
        : `${file} cannot be written: ${describeError(error)}`,
      { cause: error },
    )
  }
  session.result(
    { file },
    `${file} is written. Fill in model.path and data.train, then \`grasp doctor --config ${file}\` checks it.\n`,
  )
}
