/** state.json of a checkpoint: what it holds, and the hash of every file. */
import { createHash } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { z } from 'zod'
import { describeError, GraspError } from '../../errors/grasp-error.ts'

const FORMAT = 1
export const STATE_FILE = 'state.json'

const sha256Schema = z.string().regex(/^[0-9a-f]{64}$/)
const loraSchema = z.strictObject({
  rank: z.number().int().positive(),
  alpha: z.number().positive(),
  rankStabilised: z.boolean(),
  targets: z.array(z.string()),
  seed: z.number().int(),
})
const bodySchema = z.strictObject({
  policyVersion: z.number().int().nonnegative(),
  /** Of the policy's weights. */
  weightsHash: sha256Schema,
  /** Of the teacher that the policy descends from. */
  teacherHash: sha256Schema,
  /** Steps that the optimiser has taken; its moments are absent before the first. */
  optimiserSteps: z.number().int().nonnegative(),
  /** How the adapter is made, where one is trained instead of the weights. */
  lora: loraSchema.optional(),
  /** Older policy versions kept beside the newest, ascending. */
  keptPolicies: z.array(z.number().int().nonnegative()),
  /** sha256 of each file by its path in the checkpoint. */
  files: z.record(z.string(), sha256Schema),
  /** The caller's. */
  state: z.unknown(),
})

export type CheckpointState = z.infer<typeof bodySchema>

/** The file's text, with a checksum of its own content. */
export function stateJson(state: CheckpointState): string {
  const body = JSON.parse(JSON.stringify({ ...state, state: state.state ?? null })) as CheckpointState
  return `${JSON.stringify({ format: FORMAT, checksum: checksum(body), ...body }, null, 2)}\n`
}

export async function readState(folder: string): Promise<CheckpointState> {
  const path = join(folder, STATE_FILE)
  let raw: unknown
  try {
    raw = JSON.parse(await readFile(path, 'utf8'))
  } catch (cause) {
    throw invalid(path, `cannot be read: ${describeError(cause)}`, cause)
  }
  const { format, checksum: expected, ...body } = (raw ?? {}) as Record<string, unknown>
  if (format !== FORMAT) {
    throw invalid(path, `has the format ${JSON.stringify(format)}; this version reads ${FORMAT}`)
  }
  if (checksum(body) !== expected) throw invalid(path, 'is damaged: its checksum does not match')
  const parsed = bodySchema.safeParse(body)
  if (!parsed.success) throw invalid(path, `is wrong: ${z.prettifyError(parsed.error)}`)
  return parsed.data
}

function checksum(body: unknown): string {
  return createHash('sha256').update(JSON.stringify(body)).digest('hex')
}

/** What was trained is in the log too, so that a checkpoint can be done without. */
export const WITHOUT_IT =
  'Remove the folder of this checkpoint: the run then goes on from an earlier one, or from its log.'

function invalid(path: string, what: string, cause?: unknown): GraspError {
  return new GraspError(
    'CHECKPOINT_INVALID',
    `${path} ${what}. ${WITHOUT_IT}`,
    cause === undefined ? undefined : { cause },
  )
}
