import { describeLog } from '../conformance.ts'
import { makeLmdbHarness } from './harness.ts'

describeLog('LMDB', makeLmdbHarness)
