/**
 * Makes the lab's data, all of it synthetic: held-out people in every split, in LaMP-QA's format, and the
 * answer key of the lexical judge. The same seed gives the same bytes.
 *
 *     node --import tsx examples/lab/make-data.ts [DIRECTORY]
 */
import { mkdir, writeFile } from 'node:fs/promises'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { makeItem } from './world/items.ts'
import { makeKey } from './world/key.ts'

export const SEED = 1
export const SPLITS = { train: 2400, validation: 100, test: 200 } as const
export const DATA = fileURLToPath(new URL('./data', import.meta.url))

/** File name to text. */
export function makeData(seed: number = SEED): Map<string, string> {
  const files = new Map<string, string>()
  for (const [split, count] of Object.entries(SPLITS)) {
    const lines = Array.from({ length: count }, (_, index) =>
      JSON.stringify(makeItem(seed, split, index).item),
    )
    files.set(`${split}.jsonl`, `${lines.join('\n')}\n`)
  }
  return files.set('key.json', `${JSON.stringify(makeKey(), null, 1)}\n`)
}

if (process.argv[1] && import.meta.url === pathToFileURL(process.argv[1]).href) {
  const directory = process.argv[2] ?? DATA
  await mkdir(directory, { recursive: true })
  for (const [name, text] of makeData()) await writeFile(`${directory}/${name}`, text)
}
