import { trainingOnDevice } from './training-on-devices.ts'

trainingOnDevice('training on a device', 'cpu')
