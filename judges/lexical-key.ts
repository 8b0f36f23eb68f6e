/**
 * The lexical judge's answer key, a JSON file:
 *
 *     { "topics":  { "reading": ["What should I read next?"] },
 *       "aspects": { "Spares sore knees": {
 *           "touches": ["knees", "knee"],
 *           "recommendations": { "reading": ["an armchair novel"] } } } }
 *
 * `topics` says which questions ask about the same thing; an aspect is named by its text.
 */
import { createHash } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import { z } from 'zod'
import { describeError, GraspError } from '../errors/grasp-error.ts'
import { words } from '../retrievers/words.ts'

const phrase = z.string().refine(text => words(text).length > 0, 'expected a phrase with at least one word')
const phrases = z.array(phrase).min(1)

const schema = z
  .strictObject({
    /** Free text for whoever opens the file. */
    note: z.string().optional(),
    topics: z.record(z.string(), phrases),
    aspects: z.record(
      phrase,
      z.strictObject({ touches: phrases, recommendations: z.record(z.string(), phrases) }),
    ),
  })
  .superRefine(({ topics, aspects }, context) => {
    for (const [aspect, { recommendations }] of Object.entries(aspects)) {
      for (const topic of Object.keys(recommendations)) {
        if (Object.hasOwn(topics, topic)) continue
        context.addIssue({
          code: 'custom',
          path: ['aspects', aspect, 'recommendations', topic],
          message: 'expected a topic that is listed under topics',
        })
      }
    }
  })

export type LexicalKey = z.infer<typeof schema>

/** Reads a key and the sha256 of its bytes. Throws DATA_INVALID with file and field. */
export async function readLexicalKey(path: string): Promise<{ key: LexicalKey; digest: string }> {
  let bytes: Buffer
  let json: unknown
  try {
    bytes = await readFile(path)
    json = JSON.parse(bytes.toString('utf8'))
  } catch (error) {
    throw new GraspError('DATA_INVALID', `${path}: cannot read the answer key: ${describeError(error)}`, {
      cause: error,
    })
  }
  const parsed = schema.safeParse(json)
  if (!parsed.success) {
    const { path: field, message } = parsed.error.issues[0]!
    throw new GraspError(
      'DATA_INVALID',
      `${path}: answer key: ${field.join('.') || 'the whole file'}: ${message}`,
    )
  }
  return { key: parsed.data, digest: createHash('sha256').update(bytes).digest('hex') }
}
