import { readFile } from 'node:fs/promises'
import { describeError, GraspError } from '../../errors/grasp-error.ts'

/** A file's text, or undefined where there is no such file. */
export async function optionalText(path: string): Promise<string | undefined> {
  try {
    return await readFile(path, 'utf8')
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined
    throw new GraspError('MODEL_INVALID', `${path} cannot be read: ${describeError(error)}`, { cause: error })
  }
}

/** A JSON object, or {} where there is no such file. */
export async function optionalJson(path: string): Promise<Record<string, unknown>> {
  const text = await optionalText(path)
  return text === undefined ? {} : parseObject(path, text)
}

/** @throws GraspError MODEL_INVALID naming the file. */
export function parseObject(path: string, text: string): Record<string, unknown> {
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch (cause) {
    throw new GraspError('MODEL_INVALID', `${path} is not JSON: ${describeError(cause)}`, { cause })
  }
  if (typeof value !== 'object' || value === null || Array.isArray(value)) {
    throw new GraspError('MODEL_INVALID', `${path} is not a JSON object`)
  }
  return value as Record<string, unknown>
}
