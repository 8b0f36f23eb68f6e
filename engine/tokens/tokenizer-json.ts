/** The parts of tokenizer.json that are relied on, checked: a library that is given others fails somewhere inside. */
import { GraspError } from '../../errors/grasp-error.ts'
import type { TokenizerJson } from './control-tokens.ts'

const TYPES: readonly unknown[] = ['BPE', 'Unigram', 'WordPiece', 'WordLevel']

/** @throws GraspError MODEL_INVALID, MODEL_UNSUPPORTED naming the part that is missing or wrong */
export function checkTokenizerJson(path: string, json: Readonly<Record<string, unknown>>): TokenizerJson {
  const { model, added_tokens: added = [] } = json
  if (!isObject(model)) throw invalid(path, 'model', model, 'an object')
  const { type, vocab, merges } = model
  // Files of early versions name no type.
  if (type !== undefined && !TYPES.includes(type)) {
    const what = `${path}: model.type is ${show(type)}; supported: ${TYPES.join(', ')}`
    throw new GraspError('MODEL_UNSUPPORTED', what)
  }
  if (Array.isArray(vocab)) {
    const odd = vocab.findIndex(entry => !Array.isArray(entry) || typeof entry[0] !== 'string')
    if (odd >= 0) throw invalid(path, `model.vocab[${odd}]`, vocab[odd], 'a token and its score')
  } else if (isObject(vocab)) {
    for (const token in vocab) {
      if (!isId(vocab[token])) throw invalid(path, `model.vocab[${show(token)}]`, vocab[token], 'an id')
    }
  } else throw invalid(path, 'model.vocab', vocab, 'tokens')
  if (type !== undefined && Array.isArray(vocab) !== (type === 'Unigram')) {
    const lists =
      type === 'Unigram' ? 'a list of tokens and their scores' : 'an object of tokens and their ids'
    throw new GraspError('MODEL_INVALID', `${path}: model.vocab of a ${type} model is not ${lists}`)
  }
  if (merges !== undefined || type === 'BPE') checkMerges(path, merges)
  if (!Array.isArray(added)) throw invalid(path, 'added_tokens', added, 'a list')
  for (const [index, token] of added.entries()) {
    const right = isObject(token) && typeof token.content === 'string' && isId(token.id)
    if (!right) throw invalid(path, `added_tokens[${index}]`, token, 'content and id')
  }
  return { ...json, added_tokens: added } as unknown as TokenizerJson
}

function checkMerges(path: string, merges: unknown): void {
  if (!Array.isArray(merges)) throw invalid(path, 'model.merges', merges, 'a list')
  const isPair = (merge: unknown) =>
    Array.isArray(merge) && merge.length === 2 && merge.every(part => typeof part === 'string')
  const odd = merges.findIndex(merge => typeof merge !== 'string' && !isPair(merge))
  if (odd >= 0) throw invalid(path, `model.merges[${odd}]`, merges[odd], 'two tokens')
}

function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

function isId(value: unknown): boolean {
  return Number.isInteger(value) && (value as number) >= 0 && (value as number) < 2 ** 31
}

function show(value: unknown): string {
  return (JSON.stringify(value) ?? 'missing').slice(0, 100)
}

function invalid(path: string, part: string, found: unknown, expected: string): GraspError {
  return new GraspError('MODEL_INVALID', `${path}: ${part} is ${show(found)}; expected ${expected}`)
}
