/**
 * AdamW on a device, in the order of operations of the CPU's kernel (optimiser/adamw-kernel.ts). It differs in what
 * the device's square root and division round to, and leaves out that kernel's grain: devices flush subnormal
 * numbers anyway.
 */
import type { AdamwFactors } from '../optimiser/adamw-kernel.ts'
import { LoweringBuilder } from './lowering-builder.ts'

export const FACTORS = [
  'scale',
  'beta1',
  'rest1',
  'beta2',
  'rest2',
  'rate',
  'correction',
  'epsilon',
  'shrink',
] as const
export type Factor = (typeof FACTORS)[number]

/** What the graph takes of the factors, each [1]. */
export function factorValues(factors: AdamwFactors): Readonly<Record<Factor, number>> {
  return { ...factors, rest1: 1 - factors.beta1, rest2: 1 - factors.beta2 }
}

/** `w`, `g`, `m`, `v` of one shape and the factors to `w'`, `m'`, `v'`. */
export function adamwGraph(rank: number): Uint8Array {
  const b = new LoweringBuilder('adamw')
  const shape = Array.from({ length: rank }, (_, axis) => `d${axis}`)
  const [w, g, m, v] = ['w', 'g', 'm', 'v'].map(name => b.input(name, 'float32', shape)) as [
    string,
    string,
    string,
    string,
  ]
  for (const factor of FACTORS) b.input(factor, 'float32', [1])
  const times = (x: string, y: string) => b.node('Mul', [x, y])
  const plus = (x: string, y: string) => b.node('Add', [x, y])
  const slope = times(g, 'scale')
  const mean = plus(times(m, 'beta1'), times(slope, 'rest1'))
  const square = plus(times(v, 'beta2'), times(times(slope, 'rest2'), slope))
  const root = plus(times(b.node('Sqrt', [square]), 'correction'), 'epsilon')
  const next = b.node('Sub', [times(w, 'shrink'), b.node('Div', [times(mean, 'rate'), root])])
  b.output(next, 'float32', shape, "w'")
  b.output(mean, 'float32', shape, "m'")
  b.output(square, 'float32', shape, "v'")
  return b.build()
}
