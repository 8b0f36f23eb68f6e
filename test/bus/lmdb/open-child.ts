/** Opens a log and prints how that went: `open-child.ts PATH RUN [read]`. */
import { openLmdbLog } from '../../../bus/lmdb/log.ts'
import type { GraspError } from '../../../errors/grasp-error.ts'

const [path, run, mode] = process.argv.slice(2)
try {
  const log = await openLmdbLog({ path: path!, run: run!, readOnly: mode === 'read' })
  await log.close()
  console.log('opened')
} catch (error) {
  const { code, message } = error as GraspError
  console.log(code, message)
}
