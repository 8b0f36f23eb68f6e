import { BehaviorSubject, filter, firstValueFrom } from 'rxjs'

/** Tells the stages which policy version the trainer has reached, and lets them wait for one. */
export class PolicyGate {
  readonly #version: BehaviorSubject<number>

  constructor(version: number) {
    this.#version = new BehaviorSubject(version)
  }

  get version(): number {
    return this.#version.value
  }

  announce(version: number): void {
    this.#version.next(version)
  }

  /** Resolves once the policy is at `version` or later. Rejects when the gate is closed first. */
  async reached(version: number): Promise<void> {
    await firstValueFrom(this.#version.pipe(filter(current => current >= version)))
  }

  /** No further version will come: those who wait are turned away with the error. */
  fail(error: unknown): void {
    this.#version.error(error)
  }
}
