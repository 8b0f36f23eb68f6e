/** A device that a provider computes on, as far as it could be found out. */
import type { Provider } from './provider.ts'

export interface DeviceReport {
  readonly provider: Provider
  /** `absent`: what it needs is not installed; `fails`: it is there, but does not do what it should. */
  readonly state: 'works' | 'absent' | 'fails'
  /** What is wrong and what would help, or what to know of a device that works; may be empty. */
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

/** Whether so great an error is what rounding makes of a product of matrices. */
export function isRight(error: number | undefined): error is number {
  return error !== undefined && error < TOLERANCE
}

export function wrongly(error: number | undefined): string {
  if (error === undefined) return 'it gave no result'
  return `it computes wrongly: a product of matrices is off by ${error.toExponential(0)} of its greatest element`
}

export function absent(provider: Provider, detail: string): DeviceReport {
  return { provider, state: 'absent', detail, facts: [] }
}

export function fails(provider: Provider, detail: string): DeviceReport {
  return { provider, state: 'fails', detail, facts: [] }
}

export function measured(what: string, value: string): Fact {
  return { what, value, source: 'measured' }
}

export function error(value: number): Fact {
  return measured('error of a product', value.toExponential(0))
}

export function half(computes: boolean): Fact {
  return measured('f16', computes ? 'yes' : 'no')
}
