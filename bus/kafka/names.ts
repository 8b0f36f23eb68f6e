/** What things are called in the cluster, which may hold many runs. */
import { GraspError } from '../../errors/grasp-error.ts'
import type { Topic } from '../../schemas/types.ts'
import { checkName } from '../check-name.ts'

/** Kafka's own limit on the length of a topic's name. */
const MAX_TOPIC_NAME = 249

export class Names {
  readonly #base: string
  /** Every record asks for one, so each is made once. */
  readonly #topics = new Map<Topic, string>()

  /** Errors: CONFIG_INVALID for a prefix or run that cannot be part of a topic's name. */
  constructor(prefix: string, run: string) {
    for (const [what, name] of [
      ['log.prefix', prefix],
      ['run', run],
    ] as const) {
      if (/^[A-Za-z0-9._-]{1,100}$/.test(name)) continue
      throw new GraspError(
        'CONFIG_INVALID',
        `${what}: Kafka takes names of letters (a to z), digits, '_', '-' and '.', at most 100 long, ` +
          `got ${JSON.stringify(name)}`,
      )
    }
    this.#base = `${prefix}.${run}`
    if (this.topic('evaluations').length > MAX_TOPIC_NAME) {
      throw new GraspError('CONFIG_INVALID', `log.prefix and run are too long together for a topic's name`)
    }
  }

  topic(topic: Topic): string {
    let name = this.#topics.get(topic)
    if (name === undefined) {
      name = `${this.#base}.${topic}`
      this.#topics.set(topic, name)
    }
    return name
  }

  /** Notes, seals and schemas. */
  get meta(): string {
    return `${this.#base}.meta`
  }

  /** Errors: CONFIG_INVALID for a name that is empty, too long or holds a zero. */
  group(group: string): string {
    checkName('group', group)
    return `${this.#base}.${group}`
  }

  /** One for each input partition of a group, so that its next owner fences the last one. */
  transactionalId(group: string, topic: Topic, partition: number): string {
    return `${this.group(group)}.${topic}.${partition}`
  }

  /** Of all that change notes together with records. */
  get noterId(): string {
    return `${this.#base}.noter`
  }

  /** Of all that append to a topic only where it ends as they think. */
  appenderId(topic: Topic): string {
    return `${this.#base}.appender.${topic}`
  }
}
