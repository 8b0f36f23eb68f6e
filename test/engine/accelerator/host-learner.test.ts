import { learnerOnDevice } from './learner-on-devices.ts'

learnerOnDevice('the learner on a device', 'cpu')
learnerOnDevice('the learner on a device, in parts', 'cpu', 2000)
