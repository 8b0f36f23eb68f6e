/** The weights that an adapter stands for, made on a device: what lora/merger.ts does on the CPU. */
import type { ModelConfig } from '../architectures/config.ts'
import { adaptedParameters, factorNames } from '../lora/adapter.ts'
import { mergeGraph } from '../lora/merge-graph.ts'
import type { LoraOptions } from '../port.ts'
import type { Device } from './device.ts'
import { DeviceSessions } from './device-sessions.ts'
import { LoweringBuilder } from './lowering-builder.ts'
import { keepAll, Resident, type ResidentWeights } from './resident.ts'
import { scoped } from './scope.ts'

export class DeviceMerger {
  readonly #device: Device
  readonly #lora: LoraOptions
  readonly #sessions: DeviceSessions
  readonly #adapted: ReadonlySet<string>

  constructor(device: Device, config: ModelConfig, lora: LoraOptions) {
    this.#device = device
    this.#lora = lora
    this.#sessions = new DeviceSessions(device)
    this.#adapted = adaptedParameters(config, lora)
  }

  /**
   * Always from the frozen weights.
   * @param made told each weight, changed or not, in the order of their names
   * @returns new matrices for what is adapted, those of `base` for the rest
   */
  async merge(
    base: ResidentWeights,
    adapter: ResidentWeights,
    made: (name: string, weight: Resident) => Promise<void>,
  ): Promise<ResidentWeights> {
    const session = await this.#sessions.get('merge', () =>
      mergeGraph(this.#lora, new LoweringBuilder('merge')),
    )
    return scoped(this.#device, async scope => {
      const merged = new Map<string, Resident>()
      for (const name of [...base.keys()].sort()) {
        let weight = base.get(name)!
        if (this.#adapted.has(name)) {
          const { a, b } = factorNames(name)
          const feeds = { w: weight.whole, a: adapter.get(a)!.whole, b: adapter.get(b)!.whole }
          const { y } = await session.run(feeds, scope)
          weight = new Resident(this.#device, weight.dims, [y!])
          merged.set(name, weight)
        }
        await made(name, weight)
      }
      return new Map([...base, ...keepAll(scope, merged)])
    })
  }
}
