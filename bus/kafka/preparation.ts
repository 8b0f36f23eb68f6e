/** Outputs and notes as messages of partitions, encoded and checked for their size. */
import { GraspError } from '../../errors/grasp-error.ts'
import type { Topic } from '../../schemas/types.ts'
import { partitionOf } from '../partition.ts'
import type { Origin, Output } from '../port.ts'
import { allocate } from '../slab.ts'
import { OVERHEAD, type Prepared } from './batches.ts'
import type { ClusterLog } from './cluster-log.ts'
import type { KafkaCodec } from './options.ts'
import { ORIGIN_HEADER, originHeader } from './origin.ts'

export class Preparation {
  readonly #log: ClusterLog
  readonly #codec: KafkaCodec
  readonly #maxMessageBytes: number

  constructor(log: ClusterLog, codec: KafkaCodec, maxMessageBytes: number) {
    this.#log = log
    this.#codec = codec
    this.#maxMessageBytes = maxMessageBytes
  }

  /** Errors: RECORD_INVALID for a record that its topic does not take, or that is too large. */
  async outputs(
    outputs: readonly Output[],
    made?: { readonly group: string; readonly origins: readonly Origin[] },
  ): Promise<Prepared[]> {
    await this.#codec.prepareToEncode?.([...new Set(outputs.map(({ topic }) => topic))])
    const rounds = new Map<Topic, number>()
    const headersOf = (origin: Origin, group: string) => {
      const round = rounds.get(origin.topic) ?? this.#log.meta.round(group, origin.topic)
      rounds.set(origin.topic, round)
      return { [ORIGIN_HEADER]: originHeader(origin, round) }
    }
    return outputs.map(({ topic, key, value }, i) => {
      const encoded = this.#codec.encode(topic, value, allocate)
      const partition = partitionOf(key, this.#log.partitions(topic))
      const origin = made?.origins[i]
      const bytes = encoded.length + Buffer.byteLength(key) + OVERHEAD
      if (bytes + OVERHEAD > this.#maxMessageBytes) throw this.#tooLarge(topic, key, encoded.length)
      const body = Buffer.from(encoded.buffer, encoded.byteOffset, encoded.length)
      const message = { key, value: body, partition, headers: origin ? headersOf(origin, made!.group) : {} }
      return { topic, name: this.#log.names.topic(topic), partition, bytes, message }
    })
  }

  #tooLarge(topic: Topic, key: string, bytes: number): GraspError {
    return new GraspError(
      'RECORD_INVALID',
      `a record of ${topic} (key ${JSON.stringify(key.slice(0, 80))}) has ${bytes} bytes, more than the log takes ` +
        `(${this.#maxMessageBytes}): raise log.maxMessageBytes and the topic's max.message.bytes, or cut it smaller`,
    )
  }

  meta(entries: readonly (readonly [key: string, json: string])[]): Prepared[] {
    return entries.map(([key, json]) => ({
      topic: 'meta' as Topic,
      name: this.#log.names.meta,
      partition: 0,
      bytes: key.length + json.length + OVERHEAD,
      message: { key, value: json, partition: 0 },
    }))
  }
}
