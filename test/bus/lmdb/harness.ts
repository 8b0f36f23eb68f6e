import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createCodec } from '../../../bus/codec.ts'
import { writeEntry } from '../../../bus/lmdb/entry.ts'
import { openEnvironment } from '../../../bus/lmdb/environment.ts'
import { openLmdbLog } from '../../../bus/lmdb/log.ts'
import { Store } from '../../../bus/lmdb/store.ts'
import { partitionOf } from '../../../bus/partition.ts'
import type { Topic } from '../../../schemas/types.ts'
import type { LogHarness, MakeHarness } from '../conformance.ts'

export const RUN = 'test'

/** An empty folder of its own, for one test. */
export async function temporaryFolder(): Promise<{ path: string; remove(): Promise<void> }> {
  const path = await mkdtemp(join(tmpdir(), 'grasp-log-'))
  return { path, remove: () => rm(path, { recursive: true, force: true }) }
}

export const makeLmdbHarness: MakeHarness = async ({ partitions = {} }): Promise<LogHarness> => {
  const folder = await temporaryFolder()
  return {
    open: () => openLmdbLog({ path: folder.path, run: RUN, partitions }),
    appendRaw: async (_, topic, key, payload) => appendRaw(folder.path, topic, key, payload),
    remove: folder.remove,
  }
}

/** Writes any bytes as a record, past the codec. */
export function appendRaw(path: string, topic: Topic, key: string, payload: Uint8Array): void {
  const environment = openEnvironment({
    path: join(path, RUN),
    partitions: {},
    readOnly: false,
    schemas: createCodec().schemas,
  })
  const store = new Store(environment)
  const entry = writeEntry(key, allocate => allocate(payload.length).set(payload))
  environment.root.transactionSync(() =>
    store.append(topic, partitionOf(key, store.partitions(topic)), [entry], Date.now()),
  )
}
