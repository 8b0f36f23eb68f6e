import { join, resolve } from 'node:path'
import { GraspError } from '../../errors/grasp-error.ts'
import { hubAccess } from '../../hub/access.ts'
import { pull } from '../../hub/pull.ts'
import { repository } from '../../hub/repository.ts'
import type { Session } from '../session.ts'

export async function pullCommand(
  session: Session,
  { revision, to, include }: { revision: string; to?: string; include?: readonly string[] },
  name: string,
): Promise<void> {
  const { logger, progress } = session.hooks
  const from = repository(name, revision)
  if (to === '') throw new GraspError('CONFIG_INVALID', '--to names no folder')
  if (include?.includes('')) throw new GraspError('CONFIG_INVALID', '--include names no files')
  const folder = to ?? join('models', ...name.split('/'))
  const access = await hubAccess(process.env)
  progress({ kind: 'phase', name: `fetching ${name}` })
  const pulled = await pull({
    access,
    repository: from,
    folder,
    include: include ?? [],
    signal: session.askToStop(),
    tell: line => logger.warn(line),
    progress: state => progress({ kind: 'download', ...state }),
  })
  const { commit, files, bytes, fetchedBytes } = pulled
  const megabytes = (count: number) => (count / 1e6).toFixed(count < 1e7 ? 1 : 0)
  session.result(
    { repository: name, revision, commit, path: resolve(folder), files, bytes, fetchedBytes },
    `${name} at commit ${commit} is in ${folder}: ${files} files, ${megabytes(bytes)} MB ` +
      `(${megabytes(fetchedBytes)} fetched), all verified.\n` +
      `To use it, set \`model: { path: ${folder} }\`. To get the same again: grasp pull ${name} --revision ${commit}\n`,
  )
}
