/** Operating a run on the embedded log. */
import { makeLmdbHarness } from '../../bus/lmdb/harness.ts'
import { describeLag } from './lag-cases.ts'
import { describeRecords } from './records-cases.ts'
import { describeReplay } from './replay-cases.ts'
import { describeReset } from './reset-cases.ts'

describeRecords('LMDB', makeLmdbHarness)
describeLag('LMDB', makeLmdbHarness)
describeReset('LMDB', makeLmdbHarness)
describeReplay('LMDB', makeLmdbHarness)
