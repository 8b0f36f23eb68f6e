/** Which layers look at a window of the latest tokens only, as config.json says it. */
import { z } from 'zod'
import type { ModelConfig, SlidingWindow } from './config.ts'
import type { ConfigFile } from './config-file.ts'
import { size } from './shared-config.ts'

export const slidingWindowShape = {
  sliding_window: size.nullish(),
  layer_types: z.array(z.string()).nullish(),
}

const SLIDING = 'sliding_attention'
const FULL = 'full_attention'

export interface WindowOptions {
  readonly layers: number
  readonly layerTypes: readonly string[] | null | undefined
  /** Tokens; null is none. */
  readonly window: number | null | undefined
  /** Whether a layer has the window where `layer_types` is not there. */
  readonly otherwise: (layer: number) => boolean
}

/** @throws GraspError MODEL_INVALID, MODEL_UNSUPPORTED */
export function slidingWindowOf(
  file: ConfigFile,
  { layers: count, layerTypes, window, otherwise }: WindowOptions,
): Pick<ModelConfig, 'slidingWindow'> {
  for (const type of layerTypes ?? []) file.only('layer_types', type, [FULL, SLIDING])
  if (layerTypes && layerTypes.length !== count) {
    throw file.invalid(`layer_types has ${layerTypes.length} entries for num_hidden_layers ${count}`)
  }
  const layers = Array.from({ length: count }, (_, layer) =>
    layerTypes ? layerTypes[layer] === SLIDING : otherwise(layer),
  )
  if (!layers.includes(true)) return {}
  if (window == null) throw file.invalid(`layer_types asks for ${SLIDING}, but there is no sliding_window`)
  const slidingWindow: SlidingWindow = { tokens: window, layers }
  return { slidingWindow }
}

/** For architectures without windows. @throws GraspError MODEL_UNSUPPORTED */
export function refuseWindows(
  file: ConfigFile,
  values: { readonly sliding_window?: unknown; readonly layer_types?: readonly string[] | null | undefined },
): void {
  file.without(values, ['sliding_window'])
  for (const type of values.layer_types ?? []) file.only('layer_types', type, [FULL])
}
