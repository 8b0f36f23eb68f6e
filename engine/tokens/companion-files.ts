/** The files beside a model's weights (tokenizer, template, settings), by name, as text and JSON. */
import { join } from 'node:path'
import { describeError, GraspError } from '../../errors/grasp-error.ts'
import type { Companions } from '../weights/companions.ts'
import { isPointer, LFS_POINTER } from '../weights/lfs-pointer.ts'

export class CompanionFiles {
  /** The model's directory or file, for errors. */
  readonly model: string
  readonly #companions: Companions

  constructor(model: string, companions: Companions) {
    this.model = model
    this.#companions = companions
  }

  /** Names a file in errors. */
  path(name: string): string {
    return join(this.model, name)
  }

  /** Undefined where there is no such file. */
  text(name: string): string | undefined {
    const bytes = this.#companions.get(name)
    return bytes === undefined ? undefined : new TextDecoder().decode(bytes)
  }

  /** A JSON object, or {} where there is no such file. */
  json(name: string): Record<string, unknown> {
    const text = this.text(name)
    return text === undefined ? {} : parseObject(this.path(name), text)
  }
}

/** @throws GraspError MODEL_INVALID naming the file. */
export function parseObject(path: string, text: string): Record<string, unknown> {
  if (text.startsWith(LFS_POINTER)) throw isPointer(path)
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
