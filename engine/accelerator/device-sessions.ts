/** Sessions by name, made when they are first asked for. */
import type { Device, DeviceSession } from './device.ts'

export class DeviceSessions {
  readonly #device: Device
  readonly #sessions = new Map<string, Promise<DeviceSession>>()

  constructor(device: Device) {
    this.#device = device
  }

  /** @param resident outputs that stay on the device */
  get(
    name: string,
    graph: () => Uint8Array,
    resident: 'all' | readonly string[] = 'all',
  ): Promise<DeviceSession> {
    let session = this.#sessions.get(name)
    if (!session) {
      session = this.#device.session(name, graph(), resident)
      this.#sessions.set(name, session)
    }
    return session
  }
}
