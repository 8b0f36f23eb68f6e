/** Copies what the compiler leaves behind into the build: the schemas and the prompts that come with the package. */
import { cp } from 'node:fs/promises'
import { extname } from 'node:path'
import { fileURLToPath } from 'node:url'

const folder = (path: string) => fileURLToPath(new URL(`../${path}`, import.meta.url))

for (const [name, extension] of [
  ['schemas', '.avsc'],
  ['schemas/released', '.json'],
  ['prompts', '.md'],
] as const) {
  await cp(folder(name), folder(`dist/${name}`), {
    recursive: true,
    filter: source => extname(source) === '' || extname(source) === extension,
  })
}
