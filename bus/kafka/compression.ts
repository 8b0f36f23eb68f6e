/**
 * The codecs of Kafka's record batches. gzip is kafkajs's own; snappy and lz4 are packages that are loaded when
 * they are needed: for writing, where `log.compression` names them, and for reading whatever is in the log, since
 * other writers and the brokers (`compression.type`) choose codecs too.
 */
import { createRequire } from 'node:module'
import kafkajs, { CompressionTypes } from 'kafkajs'
import { describeError, GraspError } from '../../errors/grasp-error.ts'
import type { Compression } from './options.ts'

type Codec = () => unknown
type Require = (name: string) => unknown

const PACKAGES = { snappy: 'kafkajs-snappy', lz4: '@2l/kafkajs-lz4' } as const
const LOADED = { snappy: CompressionTypes.Snappy, lz4: CompressionTypes.LZ4 } as const

/** Errors: CONFIG_INVALID for a codec whose package is not installed. */
export function compressionType(
  name: Compression,
  require: Require = createRequire(import.meta.url),
): CompressionTypes {
  if (name === 'none') return CompressionTypes.None
  if (name === 'gzip') return CompressionTypes.GZIP
  try {
    load(name, require)
  } catch (cause) {
    const remedy = `\`npm install ${PACKAGES[name]}\`, or use gzip or none`
    const message = `log.compression: ${name} needs the package ${PACKAGES[name]} (${firstLine(cause)}); ${remedy}`
    throw new GraspError('CONFIG_INVALID', message, { cause })
  }
  return LOADED[name]
}

/** Makes kafkajs read every codec that can be read here, and say what is missing for the others. */
export function registerCodecs(require: Require = createRequire(import.meta.url)): void {
  const codecs = kafkajs.CompressionCodecs as Record<number, Codec>
  for (const name of ['snappy', 'lz4'] as const) {
    let codec: Codec | undefined
    codecs[LOADED[name]] = () => {
      try {
        codec ??= load(name, require)
      } catch (cause) {
        const remedy = `\`npm install ${PACKAGES[name]}\``
        throw unreadable(name, `which needs the package ${PACKAGES[name]} (${firstLine(cause)}); ${remedy}`)
      }
      return codec()
    }
  }
  codecs[CompressionTypes.ZSTD] = () => {
    throw unreadable('zstd', 'which cannot be read; have it written with gzip, snappy, lz4 or none')
  }
}

function load(name: keyof typeof PACKAGES, require: Require): Codec {
  const loaded = require(PACKAGES[name]) as { default?: unknown }
  const exported = loaded.default ?? loaded
  return name === 'lz4' ? new (exported as new () => { codec: Codec })().codec : (exported as Codec)
}

function unreadable(codec: string, why: string): GraspError {
  return new GraspError('LOG_UNAVAILABLE', `the Kafka log holds records compressed with ${codec}, ${why}`)
}

function firstLine(error: unknown): string {
  return describeError(error).split('\n')[0]!
}
