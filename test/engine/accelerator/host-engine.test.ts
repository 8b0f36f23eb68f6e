/** What is built on the device port, on a device that is the CPU: everything but a GPU's own kernels. */
import { engineOnDevice } from './engine-on-devices.ts'

engineOnDevice('the engine on a device', 'cpu')
engineOnDevice('the engine on a device, with embedding and head in parts', 'cpu', 4096)
