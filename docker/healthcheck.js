/**
 * Whether the stage in this container is at work: a member of its consumer group on this host. The log's client
 * stops the heartbeats of a member that holds records and gets nowhere, so a stage that is stuck drops out of its
 * group, as one that hangs or has lost its brokers does. Arguments: the stage, then what the stage was given
 * (`--config`, `--set`). Stages that keep no position (ingest, evaluation) end by themselves and need no check.
 */
import { execFile } from 'node:child_process'
import { hostname } from 'node:os'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'

const [stage, ...settings] = process.argv.slice(2)
const grasp = fileURLToPath(new URL('../bin/grasp.js', import.meta.url))

try {
  const lag = [grasp, 'lag', '--json', ...settings]
  const { stdout } = await promisify(execFile)(process.execPath, lag, { maxBuffer: 64 << 20 })
  const { stages } = JSON.parse(stdout)
  const found = stages.find(each => each.stage === stage)
  if (!found) fail(`there is no stage ${stage}`)
  const isMember = found.workers.some(worker => worker.includes(` on ${hostname()} `))
  if (found.group !== null && !isMember && !isExcused(found, stages)) {
    fail(`no member of group ${found.group} on ${hostname()}; members: ${found.workers.join(', ') || 'none'}`)
  }
} catch (error) {
  fail(String(error.stderr || error.message))
}

/** Nothing is left to read, or the trainer waits for the held-out contexts, all of which its validations need. */
function isExcused({ stage, state }, stages) {
  if (state === 'complete') return true
  return stage === 'training' && stages.some(each => each.stage === 'retrieval' && each.state !== 'complete')
}

function fail(reason) {
  console.error(reason)
  process.exit(1)
}
