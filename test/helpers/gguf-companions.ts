/** The tokenizer files that are made of a GGUF file with these metadata. */
import { mkdtemp, open, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Companions } from '../../engine/weights/companions.ts'
import { readGgufHeader } from '../../engine/weights/gguf/gguf-header.ts'
import { tokenizerFiles } from '../../engine/weights/gguf/tokenizer/tokenizer-files.ts'
import { type Typed, writeGguf } from './write-gguf.ts'

export async function ggufCompanions(metadata: Readonly<Record<string, Typed>>): Promise<Companions> {
  const folder = await mkdtemp(join(tmpdir(), 'grasp-gguf-vocabulary-'))
  try {
    const path = join(folder, 'vocabulary.gguf')
    await writeGguf(path, { metadata })
    const file = await open(path)
    try {
      const header = readGgufHeader(path, file.fd, (await file.stat()).size)
      return tokenizerFiles(header.metadata, Number.POSITIVE_INFINITY, 4096)
    } finally {
      await file.close()
    }
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
}
