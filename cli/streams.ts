/** Where a command reads and writes: the process's own streams, unless it runs within another program. */
import type { Readable } from 'node:stream'
import type { Terminal } from './progress.ts'

export interface Streams {
  readonly stdin: Readable & { readonly isTTY?: boolean }
  readonly stdout: Terminal
  readonly stderr: Terminal
}
