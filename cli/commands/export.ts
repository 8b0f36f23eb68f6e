import { resolve } from 'node:path'
import type { Session } from '../session.ts'

export async function exportCommand(
  session: Session,
  { policy, dtype }: { policy: string; dtype: 'f32' | 'bf16' },
  folder: string,
): Promise<void> {
  const config = await session.config()
  const { parseSelector } = await import('../../pipelines/policies.ts')
  const { exportPolicy } = await import('../../pipelines/export.ts')
  const exported = await exportPolicy(config, { policy: parseSelector(policy), path: resolve(folder), dtype })
  session.result(
    exported,
    `policy ${exported.version} is in ${exported.path} (${dtype}; weights ${exported.weightsHash})\n`,
  )
}
