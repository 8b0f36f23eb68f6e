import { describeOperating } from './operating-cases.ts'

describeOperating('the embedded log', { settings: [] })
