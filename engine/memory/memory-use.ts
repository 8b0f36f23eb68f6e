/** Memory that is needed at the same time, by what needs it. */

export interface Part {
  readonly what: string
  readonly bytes: number
}

export interface MemoryUse {
  readonly parts: readonly Part[]
  /** Their sum. */
  readonly bytes: number
}

export function memoryUse(parts: readonly Part[]): MemoryUse {
  const needed = parts.filter(({ bytes }) => bytes > 0)
  return { parts: needed, bytes: needed.reduce((sum, { bytes }) => sum + bytes, 0) }
}

/** Of everything computed with. */
export const F32_BYTES = 4
