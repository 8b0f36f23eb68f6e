/**
 * A model's parameters by their Hugging Face names, f32 on the CPU. Nobody writes into them, but for the update that
 * replaces a version which nobody uses any more: the next one's numbers may take its arrays (cpu-backend.ts).
 */
import type { Tensor } from 'onnxruntime-node'

export type Weights = ReadonlyMap<string, Tensor>
