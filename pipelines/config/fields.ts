/** The kinds of value that the configuration's schema is made of. */
import { z } from 'zod'

export const count = (minimum: number) => z.int().min(minimum).max(Number.MAX_SAFE_INTEGER)
export const positive = () => z.number().gt(0)
export const fraction = () => z.number().min(0).max(1)
/** Names a run, or a part of a Kafka topic's name. */
export const name = () => z.string().regex(/^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$/)
/** A path in a file is relative to that file's folder, unless the run writes there. */
export const file = () => z.string().min(1).meta({ format: 'path' })
export const outputFolder = () => z.string().min(1).meta({ format: 'output-path' })
/** Where a secret is. Errors do not show the value, since it may be the secret itself, put there by mistake. */
export const environmentVariable = () =>
  z
    .string()
    .regex(/^[A-Za-z_][A-Za-z0-9_]*$/)
    .meta({ format: 'environment-variable' })

/** A section that may be left out: its own defaults then apply. */
export const section = <S extends z.ZodRawShape>(doc: string, shape: S) =>
  z
    .strictObject(shape)
    .prefault({} as never)
    .describe(doc)
