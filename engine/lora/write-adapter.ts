/** Writes an adapter as PEFT loads it: adapter_config.json and adapter_model.safetensors. */
import { join } from 'node:path'
import type { LoraOptions } from '../port.ts'
import { writeDurably } from '../weights/durable.ts'
import { writeSafetensors } from '../weights/safetensors.ts'
import type { Weights } from '../weights/weights.ts'

/** What PEFT's files put before the names of the model that an adapter is for. */
const PREFIX = 'base_model.model.'

/**
 * Into an existing, empty folder.
 * @param baseModel path or hub name of the model that the adapter belongs to
 */
export async function writeAdapter(
  folder: string,
  adapter: Weights,
  lora: LoraOptions,
  baseModel: string,
  dtype: 'f32' | 'bf16',
): Promise<void> {
  const named = new Map([...adapter].map(([name, tensor]) => [`${PREFIX}${name}`, tensor]))
  const options = { dtype, metadata: { format: 'pt' } }
  await writeSafetensors(join(folder, 'adapter_model.safetensors'), named, options)
  const modules = [...adapter.keys()].map(name => /([^.]+)\.lora_[AB]\.weight$/.exec(name)![1]!)
  const config = {
    peft_type: 'LORA',
    task_type: 'CAUSAL_LM',
    base_model_name_or_path: baseModel,
    r: lora.rank,
    lora_alpha: lora.alpha,
    lora_dropout: 0,
    use_rslora: lora.rankStabilised,
    target_modules: [...new Set(modules)].sort(),
    bias: 'none',
    fan_in_fan_out: false,
    inference_mode: true,
  }
  await writeDurably(join(folder, 'adapter_config.json'), `${JSON.stringify(config, null, 2)}\n`)
}
