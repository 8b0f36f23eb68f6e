/** A device that a provider computes on, as far as it could be found out. */
import type { Provider } from './provider.ts'

export interface DeviceReport {
  readonly provider: Provider
  /** `absent`: what it needs is not installed; `fails`: it is there, but does not do what it should. */
  readonly state: 'works' | 'absent' | 'fails'
  /** What was found, or what is wrong and what would help. */
  readonly detail: string
  readonly name?: string
  /** It computes on the processor, more slowly than `cpu` does. */
  readonly software?: boolean
  readonly facts: readonly Fact[]
  readonly memory?: DeviceMemory
}

export interface Fact {
  readonly what: string
  readonly value: string
  /** `measured`, or who says so. */
  readonly source: string
}

/** Bytes. */
export interface DeviceMemory {
  readonly free: number
  readonly total: number
  readonly source: string
}

/** A product of matrices in f32 is right to this part of its greatest element. */
const TOLERANCE = 1e-4

/** What is said of a device that computed; undefined where it computed wrongly. */
export function agreement(error: number | undefined): string | undefined {
  if (error === undefined || !(error < TOLERANCE)) return undefined
  return `a product of matrices is right to ${error.toExponential(0)}`
}
