import { resolve } from 'node:path'
import type { Session } from '../session.ts'

export async function exportCommand(
  session: Session,
  { policy, dtype, adapter = false }: { policy: string; dtype: 'f32' | 'bf16'; adapter?: boolean },
  folder: string,
): Promise<void> {
  const config = await session.config()
  const { parseSelector } = await import('../../pipelines/policies.ts')
  const { exportPolicy } = await import('../../pipelines/export.ts')
  const options = { policy: parseSelector(policy), path: resolve(folder), dtype, adapter }
  const exported = await exportPolicy(config, options)
  session.result(
    exported,
    `${adapter ? 'the adapter of ' : ''}policy ${exported.version} is in ${exported.path} (${dtype}; weights ${exported.weightsHash})\n`,
  )
}
