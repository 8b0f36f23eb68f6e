/** Something to wait for, at most for a while. */
export class Signal {
  #waiting = new Set<() => void>()

  raise(): void {
    const waiting = [...this.#waiting]
    this.#waiting.clear()
    for (const wake of waiting) wake()
  }

  wait(milliseconds: number): Promise<void> {
    return new Promise(resolve => {
      const timer = setTimeout(() => wake(), milliseconds)
      const wake = () => {
        clearTimeout(timer)
        this.#waiting.delete(wake)
        resolve()
      }
      this.#waiting.add(wake)
    })
  }
}
