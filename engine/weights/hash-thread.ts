/**
 * sha256 on a thread of its own. The caller waits only until its bytes are copied: while it computes the next
 * tensor, the last one is hashed. Both sides are synchronous, since the caller's event loop stands still meanwhile:
 * bytes go through a ring of shared memory, whose counters are waited on.
 */
import { createHash } from 'node:crypto'
import { Worker } from 'node:worker_threads'
import { GraspError } from '../../errors/grasp-error.ts'

const SLOTS = 4
const SLOT_BYTES = 1024 * 1024
/** Places in the shared counters. */
const [READY, WRITTEN, READ, LENGTHS] = [0, 1, 2, 3]
/** A slot of this length asks for the digest, which is left in the slot. */
const DIGEST = -1
const PATIENCE_MS = 60_000

/** What is needed of a hash; `node:crypto`'s is one. */
export interface ByteHash {
  update(bytes: Uint8Array | string): unknown
  digest(encoding: 'hex'): string
}

/** Plain JavaScript: the thread needs no loader of TypeScript, and starts in milliseconds. */
const THREAD = `
const { createHash } = require('node:crypto')
const { workerData } = require('node:worker_threads')
const counters = new Int32Array(workerData.counters)
const ring = new Uint8Array(workerData.ring)
let hash = createHash('sha256')
Atomics.store(counters, ${READY}, 1)
for (let read = 0; ; ) {
  Atomics.wait(counters, ${WRITTEN}, read)
  if (Atomics.load(counters, ${WRITTEN}) === read) continue
  const slot = read % ${SLOTS}
  const length = counters[${LENGTHS} + slot]
  const start = slot * ${SLOT_BYTES}
  if (length === ${DIGEST}) {
    ring.set(hash.digest(), start)
    hash = createHash('sha256')
  } else hash.update(ring.subarray(start, start + length))
  read++
  Atomics.store(counters, ${READ}, read)
  Atomics.notify(counters, ${READ})
}
`

export class HashThread {
  readonly #ring = new Uint8Array(new SharedArrayBuffer(SLOTS * SLOT_BYTES))
  readonly #counters = new Int32Array(new SharedArrayBuffer(4 * (LENGTHS + SLOTS)))
  readonly #worker: Worker
  #written = 0
  /** Bytes were handed over since the last digest. */
  #begun = false

  constructor() {
    const workerData = { ring: this.#ring.buffer, counters: this.#counters.buffer }
    this.#worker = new Worker(THREAD, { eval: true, execArgv: [], workerData })
    // It waits for ever: it is no reason for a process to live.
    this.#worker.unref()
  }

  get isReady(): boolean {
    return Atomics.load(this.#counters, READY) === 1
  }

  /** A hash; one that was begun before is given up. While the thread starts, it is one of the caller's thread. */
  hash(): ByteHash {
    if (!this.isReady) return createHash('sha256')
    if (this.#begun) this.#digest()
    return {
      update: bytes => this.#update(typeof bytes === 'string' ? Buffer.from(bytes) : bytes),
      digest: () => this.#digest(),
    }
  }

  async close(): Promise<void> {
    await this.#worker.terminate()
  }

  #update(bytes: Uint8Array): void {
    this.#begun = true
    for (let at = 0; at < bytes.length; at += SLOT_BYTES) {
      const piece = bytes.subarray(at, at + SLOT_BYTES)
      const slot = this.#freeSlot()
      this.#ring.set(piece, slot * SLOT_BYTES)
      this.#hand(slot, piece.length)
    }
  }

  #digest(): string {
    const slot = this.#freeSlot()
    this.#hand(slot, DIGEST)
    this.#await(0)
    this.#begun = false
    return Buffer.from(this.#ring.slice(slot * SLOT_BYTES, slot * SLOT_BYTES + 32)).toString('hex')
  }

  #freeSlot(): number {
    this.#await(SLOTS - 1)
    return this.#written % SLOTS
  }

  #hand(slot: number, length: number): void {
    this.#counters[LENGTHS + slot] = length
    Atomics.store(this.#counters, WRITTEN, ++this.#written)
    Atomics.notify(this.#counters, WRITTEN)
  }

  /** Until at most so many slots are not read. */
  #await(unread: number): void {
    for (;;) {
      const read = Atomics.load(this.#counters, READ)
      if (this.#written - read <= unread) return
      if (Atomics.wait(this.#counters, READ, read, PATIENCE_MS) === 'timed-out') {
        // A new process has a new thread.
        throw new GraspError('ENGINE_DIED', 'the thread that hashes the weights does not answer')
      }
    }
  }
}
