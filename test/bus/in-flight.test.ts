import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { type Finished, InFlight } from '../../bus/in-flight.ts'
import type { Place } from '../../bus/port.ts'
import { questionOutput } from './samples.ts'

function place(partition: number, offset: number): Place {
  return { topic: 'questions', partition, offset }
}

/** Finishes some deliveries, with one output named after the first. */
function finished(...consumed: Place[]): Finished {
  return { consumed, outputs: [questionOutput(`${consumed[0]!.partition}/${consumed[0]!.offset}`)] }
}

function deliver(...places: [partition: number, offset: number][]): InFlight {
  const inFlight = new InFlight()
  for (const [partition, offset] of places) inFlight.deliver(place(partition, offset))
  return inFlight
}

/** What can be committed, as text: positions | keys of the outputs. */
function taken(inFlight: InFlight): string {
  const ready = inFlight.take()
  if (!ready) return ''
  const positions = ready.positions.map(({ partition, offset }) => `${partition}:${offset}`)
  const keys = ready.finished.flatMap(each => each.outputs.map(({ key }) => key))
  return `${positions.join(' ')} | ${keys.join(' ')}`
}

describe('what is in flight', () => {
  it('is ready from the front of its partition only', () => {
    const inFlight = deliver([0, 10], [0, 11], [0, 12], [0, 13])
    inFlight.finish(finished(place(0, 12)))
    inFlight.finish(finished(place(0, 11)))
    assert.equal(taken(inFlight), '')
    inFlight.finish(finished(place(0, 10)))
    assert.equal(taken(inFlight), '0:13 | 0/10 0/11 0/12')
    assert.equal(taken(inFlight), '')
    inFlight.finish(finished(place(0, 13)))
    assert.equal(taken(inFlight), '0:14 | 0/13')
  })

  it('does not wait across partitions', () => {
    const inFlight = deliver([0, 0], [1, 0], [0, 1], [1, 1])
    inFlight.finish(finished(place(1, 0)))
    inFlight.finish(finished(place(0, 1)))
    assert.equal(taken(inFlight), '1:1 | 1/0')
    inFlight.finish(finished(place(0, 0)))
    assert.equal(taken(inFlight), '0:2 | 0/0 0/1')
  })

  it('keeps the order of deliveries across partitions in one commit', () => {
    const inFlight = deliver([1, 0], [0, 0], [1, 1], [0, 1])
    for (const at of [place(0, 1), place(1, 1), place(0, 0), place(1, 0)]) inFlight.finish(finished(at))
    assert.equal(taken(inFlight), '1:2 0:2 | 1/0 0/0 1/1 0/1')
  })

  it('commits a batch as a whole', () => {
    const inFlight = deliver([0, 0], [0, 1], [0, 2], [0, 3])
    inFlight.finish(finished(place(0, 0), place(0, 2)))
    assert.equal(taken(inFlight), '', '1 is missing between them')
    inFlight.finish(finished(place(0, 1)))
    assert.equal(taken(inFlight), '0:3 | 0/0 0/1')
  })

  it('holds back a batch, and all behind its members, until the batch can go', () => {
    const inFlight = deliver([0, 0], [0, 1], [1, 0], [1, 1], [2, 0])
    // The batch waits for 1:0; so 0:1, which comes after its member 0:0, waits too.
    inFlight.finish(finished(place(0, 0), place(1, 1)))
    inFlight.finish(finished(place(0, 1)))
    inFlight.finish(finished(place(2, 0)))
    assert.equal(taken(inFlight), '2:1 | 2/0')
    inFlight.finish(finished(place(1, 0)))
    assert.equal(taken(inFlight), '0:2 1:2 | 0/0 0/1 1/0')
  })

  it('releases batches that wait for each other together', () => {
    const inFlight = deliver([0, 0], [0, 1], [1, 0], [1, 1], [2, 0], [2, 1])
    inFlight.finish(finished(place(0, 1), place(1, 0)))
    inFlight.finish(finished(place(1, 1), place(2, 0)))
    inFlight.finish(finished(place(2, 1)))
    assert.equal(taken(inFlight), '')
    inFlight.finish(finished(place(0, 0)))
    assert.equal(taken(inFlight), '0:2 1:2 2:2 | 0/0 0/1 1/1 2/1')
  })

  it('lists what is unfinished', () => {
    const inFlight = deliver([0, 0], [0, 1], [1, 5])
    inFlight.finish(finished(place(0, 1)))
    assert.deepEqual(inFlight.unfinished(), [place(0, 0), place(1, 5)])
  })

  it('goes on with gaps between offsets', () => {
    const inFlight = deliver([0, 3], [0, 9])
    inFlight.finish(finished(place(0, 3)))
    assert.equal(taken(inFlight), '0:4 | 0/3')
    inFlight.finish(finished(place(0, 9)))
    assert.equal(taken(inFlight), '0:10 | 0/9')
  })

  describe('refuses, as STAGE_FAILED,', () => {
    const refused = (act: () => void, message: RegExp) =>
      assert.throws(act, { code: 'STAGE_FAILED', message })

    it('what was not delivered', () => {
      refused(() => deliver([0, 0]).finish(finished(place(0, 1))), /questions\/0 offset 1.*not in flight/)
      refused(
        () => deliver([0, 0]).finish(finished({ ...place(0, 0), topic: 'contexts' })),
        /contexts\/0 offset 0/,
      )
    })

    it('what was finished before, or twice at once', () => {
      const inFlight = deliver([0, 0])
      inFlight.finish(finished(place(0, 0)))
      refused(() => inFlight.finish(finished(place(0, 0))), /twice/)
      refused(() => deliver([0, 0]).finish(finished(place(0, 0), place(0, 0))), /twice/)
    })

    it('what was committed already', () => {
      const inFlight = deliver([0, 0])
      inFlight.finish(finished(place(0, 0)))
      inFlight.take()
      refused(() => inFlight.finish(finished(place(0, 0))), /not in flight/)
    })

    it('outputs for nothing', () => {
      refused(() => deliver([0, 0]).finish({ consumed: [], outputs: [questionOutput('a')] }), /for no record/)
    })
  })

  it('agrees with a slow definition on random batches', () => {
    let seed = 42
    const random = (n: number) => {
      seed = (Math.imul(seed, 1664525) + 1013904223) >>> 0
      return seed % n
    }
    for (let trial = 0; trial < 200; trial++) {
      const places = Array.from({ length: 12 }, (_, i) => place(i % 3, Math.floor(i / 3)))
      const inFlight = deliver(
        ...places.map(({ partition, offset }): [number, number] => [partition, offset]),
      )
      const rest = [...places].sort(() => random(3) - 1)
      const batches: Place[][] = []
      while (rest.length > 0) batches.push(rest.splice(0, 1 + random(3)))
      const done: Place[][] = []
      const committed = new Set<Place[]>()
      for (const batch of batches) {
        inFlight.finish({ consumed: batch, outputs: [] })
        done.push(batch)
        const ready = inFlight.take()
        for (const { consumed } of ready?.finished ?? []) committed.add(consumed as Place[])
        assert.deepEqual(committed, largestClosed(done), JSON.stringify(done))
      }
      assert.equal(committed.size, batches.length)
    }
  })
})

/** The largest set of finished batches in which every member's predecessors are members too. */
function largestClosed(done: readonly Place[][]): Set<Place[]> {
  const set = new Set(done)
  for (let changed = true; changed; ) {
    changed = false
    const covered = new Set([...set].flat().map(({ partition, offset }) => `${partition}/${offset}`))
    for (const batch of set) {
      const closed = batch.every(({ partition, offset }) =>
        Array.from({ length: offset }, (_, i) => `${partition}/${i}`).every(name => covered.has(name)),
      )
      if (closed) continue
      set.delete(batch)
      changed = true
    }
  }
  return set
}

describe('a partition that went to another member', () => {
  it('takes its work along, also what is finished afterwards', () => {
    const inFlight = deliver([0, 1], [1, 1], [1, 2], [0, 2])
    inFlight.finish(finished(place(1, 1)))
    inFlight.abandon([1])
    inFlight.finish(finished(place(1, 2)))
    inFlight.finish(finished(place(0, 1)))
    inFlight.finish(finished(place(0, 2)))
    assert.equal(taken(inFlight), '0:3 | 0/1 0/2')
    assert.deepEqual(inFlight.unfinished(), [])
  })

  it('is delivered again when it comes back, and finished once', () => {
    const inFlight = deliver([1, 1])
    inFlight.abandon([1])
    inFlight.deliver(place(1, 1))
    inFlight.finish(finished(place(1, 1)))
    inFlight.finish(finished(place(1, 1)))
    assert.equal(taken(inFlight), '1:2 | 1/1')
    assert.throws(() => inFlight.finish(finished(place(1, 1))), { code: 'STAGE_FAILED' })
  })

  it('tears a batch over several partitions, finished before or after', () => {
    const before = deliver([0, 1], [1, 1])
    before.finish(finished(place(0, 1), place(1, 1)))
    assert.throws(() => before.abandon([1]), {
      code: 'PARTITION_LOST',
      message: /starts again from the committed/,
    })
    const after = deliver([0, 1], [1, 1])
    after.abandon([1])
    assert.throws(() => after.finish(finished(place(0, 1), place(1, 1))), { code: 'PARTITION_LOST' })
  })

  it('is left out of what was taken for a commit that was refused', () => {
    const inFlight = deliver([0, 1], [1, 1])
    inFlight.finish(finished(place(0, 1)))
    inFlight.finish(finished(place(1, 1)))
    const ready = inFlight.take()!
    assert.equal(inFlight.without(ready), undefined)
    inFlight.abandon([1])
    const rest = inFlight.without(ready)!
    assert.deepEqual(
      rest.positions.map(({ partition, offset }) => [partition, offset]),
      [[0, 2]],
    )
    assert.deepEqual(rest.firsts, [place(0, 1)])
    assert.equal(rest.finished.length, 1)
  })
})
