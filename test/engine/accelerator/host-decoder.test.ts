import { decoderOnDevice } from './decoder-on-devices.ts'

decoderOnDevice('decoding on a device', 'cpu')
