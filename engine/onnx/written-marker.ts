/**
 * onnxruntime-node 1.30 copies every output of a run into a new array, even one that was given an array to write to,
 * and has been written there. With outputs as large as activations and gradients are, the copies took up to a fifth
 * of a training step and kept the garbage collector busy. But outputs are converted in the graph's order after it has run,
 * and one that is a sequence is refused. So a graph whose first output is a sequence ends with that error when all
 * other outputs stand where they were to be written, and none is copied.
 */
import type { GraphBuilder } from './graph-builder.ts'

/** The marker's name among a graph's outputs. */
export const WRITTEN = 'written'

/** Gives a graph the marker, before its other outputs. */
export function markWritten(builder: GraphBuilder): void {
  builder.sequenceOutput(builder.node('SequenceEmpty', []), WRITTEN)
}

/** Whether a run that asked for the marker failed because of it alone. */
export function isWritten(error: unknown): boolean {
  return error instanceof Error && error.message.startsWith('Non tensor type is temporarily not supported')
}
