import type { Log } from '../bus/port.ts'
import type { Context, Evaluation, Topic } from '../schemas/types.ts'

/** The held-out contexts of a split, in the order of the log; of a question that came again, its newest in the first's place. */
export async function heldOut(log: Log, split: string): Promise<Context[]> {
  const contexts = new Map<string, Context>()
  for await (const { value } of log.scan('contexts'))
    if (value?.split === split) contexts.set(value.id, value)
  return [...contexts.values()]
}

/** The answers that are already judged, by instance. */
export async function recorded(
  log: Log,
  wanted: { role: string; policyVersion: number; split: string },
): Promise<Map<string, Evaluation>> {
  const found = new Map<string, Evaluation>()
  for await (const { value } of log.scan('evaluations')) {
    if (value === undefined) continue
    const { role, policyVersion, split, instance } = value
    if (role === wanted.role && policyVersion === wanted.policyVersion && split === wanted.split) {
      found.set(instance, value)
    }
  }
  return found
}

/** Records in a topic; with a group, only those that it has consumed. */
export async function countRecords(log: Log, topic: Topic, group?: string): Promise<number> {
  const info = (await log.topics()).find(entry => entry.topic === topic)
  const limits = group === undefined ? (info?.ends ?? []) : await log.committed(topic, group)
  if (log.contiguous) return limits.reduce((sum, offset) => sum + offset, 0)
  let count = 0
  for await (const { partition, offset } of log.scan(topic)) if (offset < limits[partition]!) count += 1
  return count
}

/** Questions that were kept: further epochs, and what a stage that was set back wrote again, are not counted. */
export async function countKept(log: Log): Promise<number> {
  const kept = new Set<string>()
  for await (const { value } of log.scan('instances')) if (value) kept.add(value.context.id)
  return kept.size
}
