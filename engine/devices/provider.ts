/** What onnxruntime-node can compute with, by its names. */

export const PROVIDERS = ['cpu', 'webgpu', 'cuda'] as const

export type Provider = (typeof PROVIDERS)[number]
