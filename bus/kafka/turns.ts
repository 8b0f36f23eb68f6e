/** Work that goes one after another, by name. */
export class Turns {
  readonly #last = new Map<string, Promise<unknown>>()

  take<T>(name: string, work: () => Promise<T>): Promise<T> {
    const before = this.#last.get(name)
    const done = before ? before.then(work, work) : work()
    this.#last.set(name, done)
    const forget = () => {
      if (this.#last.get(name) === done) this.#last.delete(name)
    }
    done.then(forget, forget)
    return done
  }

  /** Resolves when everything asked for so far is settled. */
  async settled(name?: string): Promise<void> {
    await Promise.allSettled(name === undefined ? [...this.#last.values()] : [this.#last.get(name)])
  }
}
