/**
 * Two requests in later versions than kafkajs has (KIP-447, Kafka 2.5): offsets in a transaction are taken only of
 * the group's present members, and positions are told only when no open transaction can change them any more.
 */
import { createRequire } from 'node:module'
import type { Broker, TopicRequest } from './client.ts'

interface Encoder {
  writeBoolean(value: boolean): Encoder
  writeInt16(value: number): Encoder
  writeInt32(value: number): Encoder
  writeInt64(value: number | string): Encoder
  writeUVarIntString(value: string | null): Encoder
  writeUVarIntArray(items: readonly Encoder[]): Encoder
  /** Without an argument: no tagged fields. */
  writeUVarIntBytes(): Encoder
}

interface Decoder {
  readInt16(): number
  readInt32(): number
  readInt64(): { toString(): string }
  readUVarIntString(): string | null
  readUVarIntArray<T>(item: (decoder: Decoder) => T): T[]
  readTaggedFields(): void
}

const require = createRequire(import.meta.url)
const Encoder = require('kafkajs/src/protocol/encoder') as new () => Encoder
const Decoder = require('kafkajs/src/protocol/decoder') as new (data: Buffer) => Decoder
const { createErrorFromCode } = require('kafkajs/src/protocol/error') as {
  createErrorFromCode(code: number): Error
}

interface Exchange<T> {
  readonly request: {
    readonly apiKey: number
    readonly apiVersion: number
    readonly apiName: string
    encode(): Promise<Encoder>
  }
  readonly response: { decode(data: Buffer): Promise<T>; parse(decoded: T): Promise<T> }
}

/** Who commits. */
export interface Member {
  readonly memberId: string
  readonly generation: number
}

/** A commit by nobody's member, which a group takes as long as it can: for groups without members. */
export const NO_MEMBER: Member = { memberId: '', generation: -1 }

/** What a group says to one who is no member of the present generation. */
export const OUTDATED: ReadonlySet<string> = new Set([
  'ILLEGAL_GENERATION',
  'UNKNOWN_MEMBER_ID',
  'REBALANCE_IN_PROGRESS',
])

export interface TxnOffsets {
  readonly transactionalId: string
  readonly groupId: string
  readonly producerId: number | string
  readonly producerEpoch: number
  readonly topics: readonly TopicRequest<{
    readonly partition: number
    readonly offset: string
    readonly metadata?: string | null
  }>[]
}

const NO_EPOCH = -1

/** Errors: ILLEGAL_GENERATION or UNKNOWN_MEMBER_ID for one who is no member of the present generation. */
export async function txnOffsetCommit(broker: Broker, offsets: TxnOffsets, member: Member): Promise<void> {
  await send(broker, {
    request: {
      apiKey: 28,
      apiVersion: 3,
      apiName: 'TxnOffsetCommit',
      encode: async () =>
        new Encoder()
          .writeUVarIntBytes()
          .writeUVarIntString(offsets.transactionalId)
          .writeUVarIntString(offsets.groupId)
          .writeInt64(offsets.producerId)
          .writeInt16(offsets.producerEpoch)
          .writeInt32(member.generation)
          .writeUVarIntString(member.memberId)
          .writeUVarIntString(null)
          .writeUVarIntArray(
            offsets.topics.map(({ topic, partitions }) =>
              new Encoder()
                .writeUVarIntString(topic)
                .writeUVarIntArray(
                  partitions.map(({ partition, offset, metadata }) =>
                    new Encoder()
                      .writeInt32(partition)
                      .writeInt64(offset)
                      .writeInt32(NO_EPOCH)
                      .writeUVarIntString(metadata ?? null)
                      .writeUVarIntBytes(),
                  ),
                )
                .writeUVarIntBytes(),
            ),
          )
          .writeUVarIntBytes(),
    },
    response: {
      decode: async data => {
        const decoder = new Decoder(data)
        decoder.readTaggedFields()
        decoder.readInt32()
        return decoder.readUVarIntArray(readTopic(each => each.readInt16())).flat()
      },
      parse: async codes => {
        for (const code of codes) check(code)
        return codes
      },
    },
  })
}

export interface StoredOffset {
  readonly partition: number
  /** -1 where there is none. */
  readonly offset: string
  readonly metadata: string | null
}

/**
 * A group's positions in one topic. Errors: UNSTABLE_OFFSET_COMMIT, when they are to be `stable`, while a
 * transaction is open that may set them.
 */
export async function offsetFetch(
  broker: Broker,
  { groupId, topic, partitions }: { groupId: string; topic: string; partitions: readonly number[] },
  { stable }: { stable: boolean },
): Promise<StoredOffset[]> {
  const { offsets } = await send(broker, {
    request: {
      apiKey: 9,
      apiVersion: 7,
      apiName: 'OffsetFetch',
      encode: async () =>
        new Encoder()
          .writeUVarIntBytes()
          .writeUVarIntString(groupId)
          .writeUVarIntArray([
            new Encoder()
              .writeUVarIntString(topic)
              .writeUVarIntArray(partitions.map(partition => new Encoder().writeInt32(partition)))
              .writeUVarIntBytes(),
          ])
          .writeBoolean(stable)
          .writeUVarIntBytes(),
    },
    response: {
      decode: async data => {
        const decoder = new Decoder(data)
        decoder.readTaggedFields()
        decoder.readInt32()
        const offsets = decoder.readUVarIntArray(readTopic(readOffset)).flat()
        return { offsets, code: decoder.readInt16() }
      },
      parse: async decoded => {
        check(decoded.code)
        for (const { code } of decoded.offsets) check(code)
        return decoded
      },
    },
  })
  return offsets
}

/** What is told of each partition: its number, then whatever `rest` reads. */
function readTopic<T>(rest: (decoder: Decoder, partition: number) => T): (decoder: Decoder) => T[] {
  return decoder => {
    decoder.readUVarIntString()
    const found = decoder.readUVarIntArray(each => {
      const value = rest(each, each.readInt32())
      each.readTaggedFields()
      return value
    })
    decoder.readTaggedFields()
    return found
  }
}

function readOffset(decoder: Decoder, partition: number): StoredOffset & { readonly code: number } {
  const offset = decoder.readInt64().toString()
  decoder.readInt32()
  const metadata = decoder.readUVarIntString()
  return { partition, offset, metadata, code: decoder.readInt16() }
}

/** Of the errors that later versions have, kafkajs knows all but this one. */
const PRODUCER_FENCED = 90

function check(code: number): void {
  if (code === 0) return
  if (code !== PRODUCER_FENCED) throw createErrorFromCode(code)
  const message = 'another producer took the transactional id over'
  throw Object.assign(new Error(message), { type: 'PRODUCER_FENCED' })
}

/** Through kafkajs's connection to the broker. */
async function send<T>(broker: Broker, exchange: Exchange<T>): Promise<T> {
  let prototype: object | null = broker
  while (prototype !== null) {
    const symbol = Object.getOwnPropertySymbols(prototype).find(({ description }) =>
      description?.endsWith('Broker:sendRequest'),
    )
    if (symbol) {
      type Sender = Record<symbol, (exchange: Exchange<T>) => Promise<T>>
      return (broker as unknown as Sender)[symbol]!(exchange)
    }
    prototype = Object.getPrototypeOf(prototype)
  }
  throw new Error('this is not the kafkajs that the adapter was written for')
}
