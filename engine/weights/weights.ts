/** A model's parameters by their Hugging Face names, f32 on the CPU. Never written in place: an update makes new tensors. */
import type { Tensor } from 'onnxruntime-node'

export type Weights = ReadonlyMap<string, Tensor>
