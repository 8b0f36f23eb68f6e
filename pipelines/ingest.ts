/**
 * Files → `questions`. Each data file is walked through once before anything of it is used, so a file that is
 * cut off changes nothing. Items that are wrong become dead letters. What an interrupted ingest has written
 * is not written again; when all splits are in, the topic is sealed.
 */
import { relative } from 'node:path'
import { deadLetterOfItem } from '../bus/dead-letter.ts'
import { type Output, output } from '../bus/port.ts'
import { GraspError } from '../errors/grasp-error.ts'
import type { StageContext } from './context.ts'
import { countItems, type LampQaItem, readLampQa } from './data/lampqa.ts'

export type IngestContext = Pick<StageContext, 'config' | 'log' | 'logger' | 'progress'>

export interface Ingested {
  /** False where the signal came first. */
  readonly complete: boolean
  /** Items of the files that are in the log, whichever process wrote them. */
  readonly questions: number
  readonly deadletters: number
}

const SPLITS = ['train', 'validation', 'test'] as const

/** One append is durable as a whole; larger ones are quicker, smaller ones lose less on kill -9. */
const APPEND_ITEMS = 256
const APPEND_BYTES = 8 * 1024 * 1024

/** Bad items are named one by one up to here; all are in the dead letters. */
const WARNINGS = 5

/** @throws GraspError DATA_INVALID where a file as a whole is wrong, or no item of it is right. */
export async function ingest(context: IngestContext, signal?: AbortSignal): Promise<Ingested> {
  const { config, log, progress } = context
  // Before what is there is looked at: whatever another process writes from now on is noticed.
  const ends = [...((await log.topics()).find(info => info.topic === 'questions')?.ends ?? [])]
  const written = await alreadyWritten(context)
  const topic = (await log.topics()).find(info => info.topic === 'questions')
  if (topic?.sealed)
    return { complete: true, questions: written.questions.size, deadletters: written.failures.size }

  const files = SPLITS.flatMap(split => {
    const file = config.data[split]
    return file === undefined ? [] : [{ split, file, label: labelOf(file), limit: config.data.limit[split] }]
  })
  let total = 0
  for (const { file, label, limit } of files) {
    total += Math.min(await countItems(file, label), limit ?? Number.POSITIVE_INFINITY)
  }

  const taken = new Map<string, string>()
  const counts = { questions: 0, deadletters: 0 }
  for (const { split, file, label, limit } of files) {
    const before = counts.questions
    let first: GraspError | undefined
    const batch = new Batch(context, ends)
    const { maxPostBytes } = config.data
    for await (const found of readLampQa(file, { split, maxPostBytes, limit, taken, label })) {
      if (signal?.aborted) {
        await batch.flush()
        return { complete: false, ...counts }
      }
      const key = found.question?.id ?? `${split}:${found.item}`
      if (found.error === undefined) counts.questions++
      else {
        counts.deadletters++
        first ??= found.error
        if (!written.failures.has(key)) warn(context, found.error, counts.deadletters)
      }
      const known = found.error === undefined ? written.questions : written.failures
      if (!known.has(key)) await batch.add(toOutput(key, found))
      const { questions, deadletters } = counts
      progress({
        kind: 'stage',
        stage: 'ingest',
        seen: questions + deadletters,
        written: questions,
        deadletters,
        total,
      })
    }
    await batch.flush()
    if (counts.questions === before) {
      throw new GraspError(
        'DATA_INVALID',
        `${label}: no item can be used; the first: ${first?.message ?? 'none'}`,
      )
    }
  }
  await log.seal(['questions'])
  return { complete: true, ...counts }
}

/** A path as a person would write it: relative where it is below the working directory. */
function labelOf(file: string): string {
  const short = relative(process.cwd(), file)
  return short === '' || short.startsWith('..') ? file : short
}

function toOutput(key: string, found: LampQaItem): Output {
  if (found.error === undefined) return output('questions', key, found.question)
  return deadLetterOfItem(key, found.found, { stage: 'ingest', error: found.error })
}

function warn({ logger }: IngestContext, error: GraspError, count: number): void {
  if (count <= WARNINGS) logger.warn(`${error.message}; it is left out (a dead letter)`)
  else if (count === WARNINGS + 1) logger.warn('more items are left out; `grasp deadletters list` shows all')
}

async function alreadyWritten({
  log,
}: IngestContext): Promise<{ questions: Set<string>; failures: Set<string> }> {
  const questions = new Set<string>()
  const failures = new Set<string>()
  for await (const { key } of log.scan('questions')) questions.add(key)
  for await (const { key, value } of log.scan('deadletters')) if (value?.stage === 'ingest') failures.add(key)
  return { questions, failures }
}

/** Appends in groups: one at a time would wait for the disk at each item. */
class Batch {
  readonly #context: IngestContext
  /** Of `questions`, as this process knows them: two that ingest at once would write each item twice. */
  readonly #ends: number[]
  #outputs: Output[] = []
  #bytes = 0

  constructor(context: IngestContext, ends: number[]) {
    this.#context = context
    this.#ends = ends
  }

  async add(next: Output): Promise<void> {
    this.#outputs.push(next)
    this.#bytes += weight(next)
    if (this.#outputs.length >= APPEND_ITEMS || this.#bytes >= APPEND_BYTES) await this.flush()
  }

  async flush(): Promise<void> {
    const outputs = this.#outputs
    this.#outputs = []
    this.#bytes = 0
    if (outputs.length === 0) return
    const after = { topic: 'questions', ends: this.#ends } as const
    const places = await this.#context.log.append(outputs, { after })
    for (const { topic, partition, offset } of places) {
      if (topic === 'questions') this.#ends[partition] = offset + 1
    }
  }
}

/** About how large a record is, in bytes. */
function weight({ value }: Output): number {
  if ('payload' in value) return value.payload.length
  if (!('profile' in value)) return 0
  return value.profile.reduce((sum, { text }) => sum + text.length, 0)
}
