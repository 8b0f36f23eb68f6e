/**
 * Whether the stage in this container is at work: a member of its consumer group on this host. The log's client
 * stops the heartbeats of a member that holds records and gets nowhere, so a stage that is stuck drops out of its
 * group, as one that hangs or has lost its brokers does. Arguments: the stage, then what the stage was given
 * (`--config`, `--set`); or `--process` and the id of the process that was given them. Stages that keep no position
 * (ingest, evaluation) end by themselves and need no check, nor do other commands.
 */
import { execFile } from 'node:child_process'
import { readFile } from 'node:fs/promises'
import { hostname } from 'node:os'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'

const grasp = fileURLToPath(new URL('../bin/grasp.js', import.meta.url))

try {
  const given = process.argv.slice(2)
  const [stage, ...settings] = given[0] === '--process' ? await argumentsOf(given[1]) : given
  if (stage === undefined) process.exit()
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

/** The stage that a process runs, and what it was given of what `lag` takes too; nothing where it runs none. */
async function argumentsOf(pid) {
  const line = (await readFile(`/proc/${pid}/cmdline`, 'utf8')).split('\0').slice(0, -1)
  const [command, ...rest] = line.slice(line.findIndex(word => word.endsWith('bin/grasp.js')) + 1)
  if (command !== 'run') return []
  const settings = []
  let stage
  for (let i = 0; i < rest.length; i++) {
    const word = rest[i]
    if (/^(-c|--config|--set)$/.test(word)) settings.push(word, rest[++i])
    else if (/^(-c|--config=|--set=)/.test(word)) settings.push(word)
    else if (word === '--log-level') i++
    else if (!word.startsWith('-')) stage ??= word
  }
  return stage === undefined ? [] : [stage, ...settings]
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
