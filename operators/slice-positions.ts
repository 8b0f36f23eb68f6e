import type { Position } from '../bus/port.ts'
import type { Span } from '../schemas/types.ts'

/**
 * How far a trainer's work on `slices` may be committed. Batches within the lag are sampled and scored side by side, so
 * they may lie in a partition in another order than the one they are trained in: a position is past what is done, but
 * never past a slice of a batch that is yet to be trained on, which would not be read again after a restart.
 */
export class SlicePositions {
  /** By partition: the position that was told last; before any was, where reading began. */
  readonly #told = new Map<number, number>()
  /** By partition: past the last slice that is done. */
  readonly #done = new Map<number, number>()

  /** Notes a delivery: the first of a partition is where reading began. */
  deliver({ partition, offset }: { readonly partition: number; readonly offset: number }): void {
    if (!this.#told.has(partition)) this.#told.set(partition, offset)
  }

  /** What lies before `to` is done, but for the slices of open batches. */
  done({ partition, to }: Pick<Span, 'partition' | 'to'>): void {
    this.#done.set(partition, Math.max(to, this.#done.get(partition) ?? 0))
  }

  /**
   * The positions that are further than those told last.
   * @param open spans of the batches that are yet to be trained on
   */
  moved(open: readonly Span[]): Position[] {
    const positions: Position[] = []
    for (const [partition, to] of [...this.#done].sort(([a], [b]) => a - b)) {
      const held = open.filter(span => span.partition === partition).map(({ from }) => from)
      const offset = Math.min(to, ...held)
      if (offset <= this.#told.get(partition)!) continue
      this.#told.set(partition, offset)
      positions.push({ topic: 'slices', partition, offset })
    }
    return positions
  }
}
