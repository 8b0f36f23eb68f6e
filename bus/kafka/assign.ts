/** Who reads which partitions of a topic: as evenly as can be, and as much as can be where they were. */

export interface Candidate {
  readonly member: string
  /** What it reads at present. */
  readonly owned: readonly number[]
}

export function assignPartitions(
  candidates: readonly Candidate[],
  partitions: number,
): Map<string, number[]> {
  const ordered = [...candidates].sort((a, b) => (a.member < b.member ? -1 : 1))
  const least = Math.floor(partitions / ordered.length)
  let extra = partitions % ordered.length
  const assigned = new Map<string, number[]>(ordered.map(({ member }) => [member, []]))
  const free = new Set(Array.from({ length: partitions }, (_, partition) => partition))
  // Who has most keeps one of the surplus.
  for (const { member, owned } of [...ordered].sort((a, b) => b.owned.length - a.owned.length)) {
    const kept = owned.filter(partition => free.has(partition)).slice(0, least + (extra > 0 ? 1 : 0))
    if (kept.length > least) extra--
    for (const partition of kept) free.delete(partition)
    assigned.get(member)!.push(...kept)
  }
  for (const partition of free) {
    const [poorest] = [...assigned.values()].sort((a, b) => a.length - b.length)
    poorest!.push(partition)
  }
  return assigned
}
