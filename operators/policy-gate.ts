import { BehaviorSubject, filter, firstValueFrom } from 'rxjs'

/** What the stages ask before they use a policy version. */
export interface PolicySource {
  /** Resolves once the engine holds the version. */
  reached(version: number): Promise<void>
}

/** Tells the stages that share the trainer's engine which policy version it has reached. */
export class PolicyGate implements PolicySource {
  readonly #version: BehaviorSubject<number>

  constructor(version: number) {
    this.#version = new BehaviorSubject(version)
  }

  announce(version: number): void {
    this.#version.next(version)
  }

  async reached(version: number): Promise<void> {
    await firstValueFrom(this.#version.pipe(filter(current => current >= version)))
  }
}
