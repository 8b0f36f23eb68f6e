/** The files that make a directory of weights a model that others can load: tokenizer, template, settings. */
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { describeError, GraspError } from '../../errors/grasp-error.ts'

const NAMES = [
  'added_tokens.json',
  'chat_template.jinja',
  'generation_config.json',
  'merges.txt',
  'special_tokens_map.json',
  'tokenizer.json',
  'tokenizer.model',
  'tokenizer_config.json',
  'vocab.json',
]

/**
 * Contents by name. Kept in memory from the start, so that what is written later belongs to the weights even
 * when the source directory has changed since.
 */
export type Companions = ReadonlyMap<string, Uint8Array>

/** Those of the known files that the directory has. */
export async function readCompanions(directory: string): Promise<Companions> {
  const found = new Map<string, Uint8Array>()
  for (const name of NAMES) {
    const path = join(directory, name)
    try {
      found.set(name, await readFile(path))
    } catch (cause) {
      if ((cause as NodeJS.ErrnoException).code === 'ENOENT') continue
      throw new GraspError('MODEL_INVALID', `${path} cannot be read: ${describeError(cause)}`, { cause })
    }
  }
  return found
}
