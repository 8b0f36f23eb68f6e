/**
 * A file that is written from its start and hashed on the way. A piece is hashed while the system takes it,
 * so that hashing and writing cost the time of the slower one.
 */
import { createHash } from 'node:crypto'
import { type FileHandle, open } from 'node:fs/promises'

/** Bytes handed over at once: large enough that calls cost nothing, small enough to stay in the cache for both. */
const PIECE = 8 * 1024 * 1024

export class HashedFile {
  readonly #file: FileHandle
  readonly #hash = createHash('sha256')

  private constructor(file: FileHandle) {
    this.#file = file
  }

  /** Replaces a file that is there. Close it whatever happens. */
  static async create(path: string): Promise<HashedFile> {
    return new HashedFile(await open(path, 'w'))
  }

  /** The bytes must stay as they are until this returns. */
  async write(bytes: Uint8Array): Promise<void> {
    for (let at = 0; at < bytes.length; at += PIECE) {
      const piece = bytes.subarray(at, at + PIECE)
      const writing = this.#writeAll(piece)
      this.#hash.update(piece)
      await writing
    }
  }

  /** @param durable whether the content is on the disk when this returns. @returns its sha256 (hex). */
  async finish(durable: boolean): Promise<string> {
    if (durable) await this.#file.sync()
    return this.#hash.digest('hex')
  }

  close(): Promise<void> {
    return this.#file.close()
  }

  /** One call may write less than it was given. */
  async #writeAll(bytes: Uint8Array): Promise<void> {
    let done = 0
    while (done < bytes.length) done += (await this.#file.write(bytes, done)).bytesWritten
  }
}
