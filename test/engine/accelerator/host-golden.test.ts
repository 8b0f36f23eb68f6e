import { GOLDEN } from '../../golden/golden.ts'
import { goldenOnDevice } from './golden-on-devices.ts'

goldenOnDevice('on a device', { names: GOLDEN, kind: 'cpu' })
// Parts of unequal length, and more of them than a shader takes buffers.
goldenOnDevice('in parts', { names: GOLDEN, kind: 'cpu', bindingBytes: 400 })
