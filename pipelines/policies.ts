/** Which trained policies a run has left, and where. */
import { existsSync } from 'node:fs'
import { basename, join } from 'node:path'
import type { Log } from '../bus/port.ts'
import type { Engine } from '../engine/port.ts'
import { GraspError } from '../errors/grasp-error.ts'
import type { Policy } from '../schemas/types.ts'
import type { Config } from './config/config.ts'
import { openEngine } from './resources.ts'
import type { FinalPolicy } from './result.ts'
import { openRunLog } from './run-log.ts'

/** `base`: the untrained model; `best`: by validation score; `latest`: the newest; or a version's number. */
export type PolicySelector = 'base' | 'best' | 'latest' | number

export interface ChosenPolicy {
  /** 0 is the untrained model. */
  readonly version: number
  /** A Hugging Face directory. */
  readonly path: string
  /** Null for the untrained model: what its directory holds is what it is. */
  readonly weightsHash: string | null
}

/** @throws GraspError CONFIG_INVALID */
export function parseSelector(text: string): PolicySelector {
  if (text === 'base' || text === 'best' || text === 'latest') return text
  if (/^\d+$/.test(text)) return Number(text) === 0 ? 'base' : Number(text)
  throw new GraspError(
    'CONFIG_INVALID',
    `--policy ${text}: expected best, latest, base or a version's number`,
  )
}

/** The newest record of each policy version that is still there, with where it is, ascending by version. */
export async function keptPolicies(log: Log, config: Config): Promise<Policy[]> {
  const newest = new Map<number, Policy>()
  for await (const { value } of log.scan('policies')) {
    if (value === undefined) continue
    // The trainer publishes a version for other processes too; that record knows nothing of its score.
    const { best, score } = newest.get(value.version) ?? { best: false, score: null }
    newest.set(value.version, { ...value, best: value.best || best, score: value.score ?? score })
  }
  return [...newest.values()]
    .map(policy => ({ ...policy, path: present(policy.path, config) }))
    .filter(({ path }) => existsSync(path))
    .sort((a, b) => a.version - b.version)
}

/**
 * Where a version is now: a run's folder may have been moved since it was written. A checkpoint comes before what was
 * published, which a power cut may have damaged.
 */
function present(path: string, config: Config): string {
  const checkpoint = join(config.output.path, 'checkpoints', basename(path))
  return existsSync(checkpoint) ? checkpoint : path
}

/**
 * An engine whose own model is the policy: so it needs no optimiser state.
 * @throws GraspError CHECKPOINT_INVALID when the weights are not those that were recorded; as openEngine
 */
export async function openPolicy(
  config: Config,
  { version, path, weightsHash }: ChosenPolicy,
): Promise<Engine> {
  const engine = await openEngine({ ...config, model: { ...config.model, path } })
  const found = (await engine.info()).weightsHash
  if (weightsHash === null || found === weightsHash) return engine
  await engine.close()
  throw new GraspError(
    'CHECKPOINT_INVALID',
    `policy ${version} in ${path} has the weights hash ${found}, but the log says ${weightsHash}: it was damaged or ` +
      'overwritten. Take another version with --policy',
  )
}

/** The result of a run that had nothing to train on. Version 0 has no checkpoint: it is the model as it was. */
export function untrained({ model }: Config, weightsHash: string): FinalPolicy {
  return { version: 0, path: model.path, weightsHash, updates: 0 }
}

/** The result of a finished run: the policy with the best validation score, or the newest where none was measured. */
export async function bestPolicy(log: Log, config: Config): Promise<FinalPolicy> {
  const policies = await keptPolicies(log, config)
  const best = policies.filter(policy => policy.best).at(-1) ?? policies.at(-1)
  const updates = policies.at(-1)?.version ?? 0
  if (best !== undefined)
    return { version: best.version, path: best.path, weightsHash: best.weightsHash, updates }
  throw new GraspError(
    'CHECKPOINT_INVALID',
    `run "${config.run}" has no policy in ${config.output.path}; was training run with another output.path?`,
  )
}

/** @throws GraspError LOG_UNAVAILABLE where the run has no log, CHECKPOINT_INVALID where it has no such policy. */
export async function choosePolicy(config: Config, selector: PolicySelector): Promise<ChosenPolicy> {
  if (selector === 'base') return { version: 0, path: config.model.path, weightsHash: null }
  const log = await openRunLog(config, { readOnly: true }).catch(error => {
    if (!(error instanceof GraspError) || error.code !== 'LOG_UNAVAILABLE') throw error
    const message = `${error.message}. To answer with or export the untrained model (--policy base) needs no log`
    throw new GraspError('LOG_UNAVAILABLE', message, { cause: error })
  })
  try {
    const policies = await keptPolicies(log, config)
    const best = policies.filter(policy => policy.best).at(-1)
    const latest = policies.at(-1)
    const chosen =
      selector === 'best'
        ? (best ?? latest)
        : selector === 'latest'
          ? latest
          : policies.find(({ version }) => version === selector)
    if (chosen) return { version: chosen.version, path: chosen.path, weightsHash: chosen.weightsHash }
    const kept = policies.map(({ version }) => version).join(', ')
    const what = typeof selector === 'number' ? `no policy ${selector}` : 'no trained policy yet'
    const advice =
      kept === '' ? 'run `grasp run` first, or take the untrained model with --policy base' : `kept: ${kept}`
    throw new GraspError(
      'CHECKPOINT_INVALID',
      `run "${config.run}" has ${what} in ${config.output.path}; ${advice}`,
    )
  } finally {
    await log.close()
  }
}
