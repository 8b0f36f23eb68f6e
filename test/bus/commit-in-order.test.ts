import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { Subject } from 'rxjs'
import { type Committed, commitInOrder } from '../../bus/commit-in-order.ts'
import { type Finished, InFlight } from '../../bus/in-flight.ts'
import type { CommitRequest, Log, Place } from '../../bus/port.ts'
import { questionOutput, settle } from './samples.ts'

/** The commits of a log, each of which ends when the test says so. */
class Commits {
  readonly requests: CommitRequest[] = []
  readonly #ends: { resolve: (places: Place[]) => void; reject: (error: unknown) => void }[] = []

  readonly log = {
    commit: (request: CommitRequest) => {
      this.requests.push(request)
      return new Promise<Place[]>((resolve, reject) => this.#ends.push({ resolve, reject }))
    },
  } as unknown as Log

  async succeed(): Promise<void> {
    const { outputs } = this.requests.at(-1)!
    this.#ends.shift()!.resolve(outputs.map((_, offset) => ({ topic: 'questions', partition: 0, offset })))
    await settle()
  }

  async fail(error: unknown): Promise<void> {
    this.#ends.shift()!.reject(error)
    await settle()
  }

  keys(): string[] {
    return this.requests.map(({ outputs }) => outputs.map(({ key }) => key).join(' '))
  }
}

function start(options: { deliveries: number; exhausted?: boolean; seal?: 'contexts'[] }) {
  const commits = new Commits()
  const inFlight = new InFlight()
  for (let offset = 0; offset < options.deliveries; offset++) {
    inFlight.deliver({ topic: 'questions', partition: 0, offset })
  }
  const source = new Subject<Finished>()
  const seen = { committed: [] as Committed[], error: undefined as unknown, errors: 0, complete: false }
  const operator = commitInOrder({
    log: commits.log,
    group: 'g',
    stage: 'test',
    inFlight,
    exhausted: () => options.exhausted ?? true,
    seal: options.seal ?? [],
    connect: () => {},
  })
  const subscription = source.pipe(operator).subscribe({
    next: committed => seen.committed.push(committed),
    error: error => {
      seen.error = error
      seen.errors++
    },
    complete: () => {
      seen.complete = true
    },
  })
  const finish = (offset: number) =>
    source.next({
      consumed: [{ topic: 'questions', partition: 0, offset }],
      outputs: [questionOutput(`${offset}`)],
    })
  return { commits, source, seen, subscription, finish }
}

describe('commitInOrder', () => {
  it('holds outputs until everything before them is finished', async () => {
    const { commits, finish, seen } = start({ deliveries: 3 })
    finish(2)
    finish(1)
    await settle()
    assert.equal(commits.requests.length, 0)
    finish(0)
    await settle()
    assert.deepEqual(commits.keys(), ['0 1 2'])
    assert.deepEqual(commits.requests[0]!.positions, [{ topic: 'questions', partition: 0, offset: 3 }])
    assert.equal(commits.requests[0]!.group, 'g')
    assert.equal(seen.committed.length, 0, 'not before the commit is in')
    await commits.succeed()
    assert.equal(seen.committed.length, 1)
    assert.equal(seen.committed[0]!.finished.length, 3)
    assert.equal(seen.committed[0]!.places.length, 3)
  })

  it('commits together what finishes together, and what gets ready while a commit runs', async () => {
    const { commits, finish } = start({ deliveries: 6 })
    finish(0)
    finish(1)
    await settle()
    finish(2)
    finish(3)
    await settle()
    finish(4)
    assert.deepEqual(commits.keys(), ['0 1'])
    await commits.succeed()
    assert.deepEqual(commits.keys(), ['0 1', '2 3 4'])
    await commits.succeed()
    finish(5)
    await settle()
    assert.deepEqual(commits.keys(), ['0 1', '2 3 4', '5'])
  })

  it('completes after the last commit, sealing', async () => {
    const { commits, source, finish, seen } = start({ deliveries: 1, seal: ['contexts'] })
    finish(0)
    source.complete()
    await settle()
    assert.equal(seen.complete, false)
    await commits.succeed()
    assert.deepEqual(commits.requests[1], { group: 'g', outputs: [], positions: [], seal: ['contexts'] })
    assert.equal(seen.complete, false)
    await commits.succeed()
    assert.equal(seen.complete, true)
  })

  it('does not seal when reading was cut short, nor mind what is unfinished', async () => {
    const { commits, source, finish, seen } = start({ deliveries: 2, exhausted: false, seal: ['contexts'] })
    finish(0)
    source.complete()
    await settle()
    await commits.succeed()
    assert.deepEqual(commits.keys(), ['0'])
    assert.equal(seen.complete, true)
  })

  it('fails when a stage leaves deliveries unfinished, after committing what it can', async () => {
    const { commits, source, finish, seen } = start({ deliveries: 4, seal: ['contexts'] })
    finish(0)
    finish(3)
    source.complete()
    await settle()
    await commits.succeed()
    assert.deepEqual(commits.keys(), ['0'])
    const { code, message } = seen.error as { code: string; message: string }
    assert.equal(code, 'STAGE_FAILED')
    assert.match(message, /stage test ended without finishing questions\/0 offset 1 and 1 more/)
    assert.equal(seen.complete, false)
  })

  it('passes an error of the source on, once, after what was ready is in', async () => {
    const { commits, source, finish, seen } = start({ deliveries: 3 })
    finish(0)
    finish(2)
    source.error(new Error('the stage broke'))
    await settle()
    assert.equal(seen.error, undefined)
    await commits.succeed()
    assert.match(String(seen.error), /the stage broke/)
    assert.equal(seen.errors, 1)
    assert.deepEqual(commits.keys(), ['0'])
  })

  it('passes a failing commit on, and commits no more', async () => {
    const { commits, finish, seen } = start({ deliveries: 3 })
    finish(0)
    await settle()
    finish(1)
    await commits.fail(new Error('disk full'))
    assert.match(String(seen.error), /disk full/)
    assert.equal(seen.errors, 1)
    assert.deepEqual(commits.keys(), ['0'])
  })

  it('fails when a record is finished twice', async () => {
    const { finish, seen } = start({ deliveries: 2 })
    finish(1)
    finish(1)
    await settle()
    assert.equal((seen.error as { code: string }).code, 'STAGE_FAILED')
  })

  it('commits no more after unsubscribing', async () => {
    const { commits, finish, seen, subscription } = start({ deliveries: 3 })
    finish(0)
    await settle()
    finish(1)
    subscription.unsubscribe()
    await commits.succeed()
    assert.deepEqual(commits.keys(), ['0'])
    assert.equal(seen.committed.length, 0)
  })
})
