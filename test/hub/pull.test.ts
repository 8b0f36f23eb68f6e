import assert from 'node:assert/strict'
import { existsSync } from 'node:fs'
import { mkdir, mkdtemp, readdir, readFile, rm, symlink, truncate, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, afterEach, before, beforeEach, describe, test } from 'node:test'
import { loadModelDirectory } from '../../engine/weights/model-directory.ts'
import { weightsHash } from '../../engine/weights/weights-hash.ts'
import { type Pulled, type PullOptions, type PullProgress, pull } from '../../hub/pull.ts'
import { repository } from '../../hub/repository.ts'
import { makeTinyModel, type TinyModel } from '../helpers/tiny-model.ts'
import { COMMIT, type HubFiles, HubServer, sendAndCut, sendRange, sha256 } from './hub-server.ts'

const NAME = 'org/tiny-model'
const TOKEN = 'hf_secretSECRETsecret'
const WEIGHTS = 'model-00001-of-00002.safetensors'

let model: TinyModel
let files: HubFiles
let weights: Buffer
before(async () => {
  model = await makeTinyModel({ shards: 2 })
  const entries = await readdir(model.path)
  files = Object.fromEntries(
    await Promise.all(entries.map(async name => [name, await readFile(join(model.path, name))])),
  )
  weights = files[WEIGHTS] as Buffer
})
after(() => model.remove())

let parent: string
let folder: string
let hub: HubServer
let told: string[]
let pauses: number[]
let seen: PullProgress[]
beforeEach(async () => {
  parent = await mkdtemp(join(tmpdir(), 'grasp-hub-'))
  folder = join(parent, 'model')
  hub = await HubServer.start(NAME, {
    ...files,
    'README.md': '# model',
    'pytorch_model.bin': 'pickle',
    'onnx/model.onnx': 'onnx',
    'original/params.json': '{}',
    'consolidated.safetensors': 'again',
  })
  told = []
  pauses = []
  seen = []
})
afterEach(async () => {
  await hub[Symbol.asyncDispose]()
  await rm(parent, { recursive: true })
})

function fetchModel(changes: Partial<PullOptions> = {}): Promise<Pulled> {
  return pull({
    access: { endpoint: hub.endpoint, token: TOKEN },
    repository: repository(NAME, 'main'),
    folder,
    signal: new AbortController().signal,
    tell: line => told.push(line),
    progress: progress => seen.push(progress),
    pause: async ms => {
      pauses.push(ms)
    },
    ...changes,
  })
}

/** The failure's message; it names no token. */
async function failure(changes: Partial<PullOptions> = {}, code = 'HUB_FAILED'): Promise<string> {
  const error = await fetchModel(changes).then(
    () => assert.fail('it was fetched'),
    (error: unknown) => error as { code: string; message: string },
  )
  assert.equal(error.code, code, error.message)
  assert.ok(!JSON.stringify([error.message, told]).includes(TOKEN), error.message)
  return error.message
}

const there = async () => (await readdir(folder)).sort()
const content = (name: string) => readFile(join(folder, name))
const ranges = (name: string) =>
  hub.asked
    .filter(({ at, path }) => at === 'storage' && path.includes(name))
    .map(({ headers }) => headers.range)

describe('a pull', () => {
  test('brings what a model needs, verified, with a record of the commit, and it loads', async () => {
    const pulled = await fetchModel()
    assert.deepEqual(await there(), ['.grasp-pull.json', ...Object.keys(files)].sort())
    for (const [name, expected] of Object.entries(files))
      assert.deepEqual(await content(name), expected, name)
    const bytes = Object.values(files).reduce((total, { length }) => total + length, 0)
    assert.deepEqual(pulled, { commit: COMMIT, files: Object.keys(files).length, bytes, fetchedBytes: bytes })
    const record = JSON.parse((await content('.grasp-pull.json')).toString())
    assert.deepEqual(
      [record.repository, record.revision, record.commit, record.complete],
      [NAME, 'main', COMMIT, true],
    )
    assert.deepEqual(record.files[WEIGHTS], { bytes: weights.length, sha256: sha256(weights) })
    const expected = await loadModelDirectory(model.path)
    assert.equal(weightsHash((await loadModelDirectory(folder)).weights), weightsHash(expected.weights))
    const count = Object.keys(files).length
    assert.deepEqual(seen.at(-1), { bytes, totalBytes: bytes, files: count, totalFiles: count })
    assert.deepEqual([told, pauses], [[], []])
    assert.ok(hub.mostAtOnce <= 4, `${hub.mostAtOnce} files at once`)
  })

  test('several files come at the same time', async () => {
    const waiting: (() => void)[] = []
    hub.trouble = ({ at, headers }, response, all) => {
      if (at !== 'storage') return false
      waiting.push(() => sendRange(response, headers, all))
      // The first shard comes once the second is asked for.
      if (waiting.length > 1) for (const send of waiting) send()
      return true
    }
    await fetchModel({ silenceMs: 5000 })
    assert.equal(waiting.length, 2)
  })

  test('files are asked for at the commit that the revision stood for at the start', async () => {
    await fetchModel({ repository: repository(NAME, 'refs/pr/1') })
    const [list, ...rest] = hub.paths('hub')
    assert.equal(list, `/api/models/${NAME}/revision/refs%2Fpr%2F1`)
    const resolved = rest.filter(path => path.includes('/resolve/'))
    assert.equal(resolved.length, Object.keys(files).length)
    for (const path of resolved) assert.ok(path.startsWith(`/${NAME}/resolve/${COMMIT}/`), path)
  })

  test('the token goes to the hub alone', async () => {
    hub.token = TOKEN
    await fetchModel()
    const authorized = (at: string) =>
      hub.asked.filter(asked => asked.at === at).map(asked => asked.headers.authorization)
    assert.deepEqual([...new Set(authorized('hub'))], [`Bearer ${TOKEN}`])
    assert.ok(hub.paths('hub').some(path => path.startsWith('/api/resolve-cache/')))
    assert.deepEqual([...new Set(authorized('storage'))], [undefined])
    assert.ok(!(await content('.grasp-pull.json')).includes(TOKEN))
  })

  test('patterns say what is fetched instead', async () => {
    await fetchModel({ include: ['*.onnx', 'original/', 'README.?d'] })
    const names = (await readdir(folder, { recursive: true })).sort()
    assert.deepEqual(
      names,
      ['.grasp-pull.json', 'README.md', 'onnx', 'onnx/model.onnx', 'original', 'original/params.json'].sort(),
    )
    await rm(folder, { recursive: true })
    assert.match(await failure({ include: ['*.gguf'] }), /org\/tiny-model has no file that matches \*\.gguf/)
  })

  test('a repository without safetensors is told by what it has', async () => {
    hub.list = listing => ({
      ...listing,
      siblings: listing.siblings.filter(({ rfilename }) => !String(rfilename).includes('safetensors')),
    })
    assert.match(
      await failure(),
      /no safetensors beside its settings, but pytorch_model\.bin, onnx\/model\.onnx\. .*--include/,
    )
  })
})

describe('a second pull', () => {
  test('fetches nothing that is there, and repairs what was changed', async () => {
    await fetchModel()
    hub.asked.length = 0
    assert.equal((await fetchModel()).fetchedBytes, 0)
    assert.equal(hub.asked.length, 1)
    await writeFile(join(folder, 'config.json'), '{"mine": true}')
    await truncate(join(folder, WEIGHTS), 100)
    await fetchModel()
    assert.deepEqual(await content('config.json'), files['config.json'])
    assert.deepEqual(await content(WEIGHTS), weights)
    assert.deepEqual(told.sort(), [
      'config.json: the one that is there is damaged or was changed; fetching it again',
      `${WEIGHTS}: the one that is there is damaged or was changed; fetching it again`,
    ])
  })

  test('of a newer version replaces what changed', async () => {
    await fetchModel()
    const newer = await HubServer.start(NAME, { ...files, 'config.json': '{"newer": true}' })
    try {
      await fetchModel({ access: { endpoint: newer.endpoint } })
      assert.equal(String(await content('config.json')), '{"newer": true}')
      assert.deepEqual(told, ['config.json: the one that is there is of another version; fetching it again'])
    } finally {
      await newer[Symbol.asyncDispose]()
    }
  })

  test('does not mix two versions: what the newer one lacks is in the way', async () => {
    await fetchModel()
    await fetchModel({ include: ['README.md'] })
    const record = JSON.parse(String(await content('.grasp-pull.json')))
    assert.deepEqual(Object.keys(record.files).sort(), [...Object.keys(files), 'README.md'].sort())
    const newer = await HubServer.start(NAME, { 'config.json': '{}', 'model.safetensors': 'one file now' })
    try {
      newer.list = listing => ({ ...listing, sha: 'f'.repeat(40) })
      const message = await failure({ access: { endpoint: newer.endpoint } })
      assert.match(
        message,
        /model holds .* of commit 0123.*, which is not among .* of commit ffff.*Give another folder/,
      )
      assert.deepEqual(await content('config.json'), files['config.json'])
    } finally {
      await newer[Symbol.asyncDispose]()
    }
  })

  test('goes on from the parts that a stopped one left', async () => {
    hub.trouble = (asked, response, all) => {
      if (asked.at === 'storage')
        response.writeHead(200, { 'content-length': all.length }).write(all.subarray(0, 5000))
      return asked.at === 'storage'
    }
    const stop = new AbortController()
    const others = Object.entries(files).filter(([name]) => !/^model-.*s$/.test(name))
    const enough = others.reduce((total, [, { length }]) => total + length, 2 * 5000)
    const progress = ({ bytes }: PullProgress) => {
      if (bytes === enough) stop.abort()
    }
    const message = await failure({ signal: stop.signal, progress }, 'INTERRUPTED')
    assert.match(message, /stopped; the same command goes on from what is in .*model/)
    assert.deepEqual(await content(`${WEIGHTS}.part`), weights.subarray(0, 5000))
    hub.trouble = () => false
    hub.asked.length = 0
    const { fetchedBytes, bytes } = await fetchModel()
    assert.deepEqual(ranges(WEIGHTS), ['bytes=5000-'])
    assert.deepEqual(await content(WEIGHTS), weights)
    assert.ok(fetchedBytes <= bytes - 10_000)
    assert.ok(!(await there()).some(name => name.endsWith('.part')))
  })

  test('starts over where a part belongs to something else', async () => {
    await fetchModel()
    await rm(join(folder, WEIGHTS))
    await writeFile(join(folder, `${WEIGHTS}.part`), 'of another version')
    hub.asked.length = 0
    await fetchModel()
    assert.deepEqual(ranges(WEIGHTS), ['bytes=18-', undefined])
    assert.deepEqual(await content(WEIGHTS), weights)
    assert.deepEqual(told, [`${WEIGHTS}: the part that was there is of another content; fetching all of it`])
    await rm(join(folder, WEIGHTS))
    await writeFile(join(folder, `${WEIGHTS}.part`), Buffer.alloc(weights.length + 1))
    await fetchModel()
    assert.deepEqual(await content(WEIGHTS), weights)
    const { bytes, totalBytes } = seen.at(-1)!
    assert.equal(bytes, totalBytes)
  })

  test('a folder with other files, or of another repository, is left alone', async () => {
    await mkdir(folder)
    await writeFile(join(folder, 'notes.txt'), 'mine')
    assert.match(await failure(), /model holds other files \(notes\.txt\); give a new or an empty folder/)
    await rm(folder, { recursive: true })
    await fetchModel()
    const other = { repository: repository('org/other', 'main') }
    assert.match(await failure(other), /holds files of org\/tiny-model; give another folder for org\/other/)
    await writeFile(join(folder, '.grasp-pull.json'), '{')
    assert.match(await failure(), /\.grasp-pull\.json cannot be read/)
    await writeFile(join(folder, '.grasp-pull.json'), '{"repository": 5}')
    assert.match(
      await failure(),
      /cannot be read: .*expected string, received number → at repository.*Remove it, or give/,
    )
  })
})

describe('trouble that passes', () => {
  test('a connection that is cut goes on from where it was', async () => {
    const cuts = [3000, 1000, 1]
    hub.trouble = ({ at, path, headers }, response, all) => {
      const count = at === 'storage' && path.includes(WEIGHTS) ? cuts.shift() : undefined
      if (count !== undefined) sendAndCut(response, headers, all, count)
      return count !== undefined
    }
    await fetchModel()
    assert.deepEqual(ranges(WEIGHTS), [undefined, 'bytes=3000-', 'bytes=4000-', 'bytes=4001-'])
    assert.deepEqual(await content(WEIGHTS), weights)
    // Bytes came each time: the waits do not grow.
    assert.deepEqual(pauses, [1000, 1000, 1000])
    assert.equal(told.length, 3)
    assert.match(told[0]!, /^model-00001.*: .*; trying again in 1 s$/)
  })

  test('a server that ignores ranges is read from the start', async () => {
    let first = true
    hub.trouble = ({ at, path, headers }, response, all) => {
      if (at !== 'storage' || !path.includes(WEIGHTS)) return false
      if (first) sendAndCut(response, headers, all, 3000)
      else response.writeHead(200, { 'content-length': all.length }).end(all)
      first = false
      return true
    }
    await fetchModel()
    assert.deepEqual(await content(WEIGHTS), weights)
    const { bytes, totalBytes } = seen.at(-1)!
    assert.equal(bytes, totalBytes)
  })

  test('a server that ignores ranges and breaks off at the same place is given up', async () => {
    hub.trouble = ({ at, path }, response, all) => {
      if (at !== 'storage' || !path.includes(WEIGHTS)) return false
      sendAndCut(response, {}, all, 3000)
      return true
    }
    assert.match(await failure(), /model-00001.* broke the connection: \w+ \(5 attempts\)/)
    // The first attempt brought something, the others nothing more.
    assert.deepEqual(pauses, [1000, 2000, 4000, 8000])
  })

  test('busy answers are waited for as the server says, else ever longer', async () => {
    const answers: [number, Record<string, string>][] = [
      [429, { 'retry-after': '7' }],
      [429, { ratelimit: '"resolvers";r=0;t=55', 'retry-after': '1' }],
      [503, { 'retry-after': new Date(Date.now() - 5000).toUTCString() }],
      [500, { ratelimit: '"api";r=10;t=55' }],
    ]
    hub.trouble = ({ path }, response) => {
      const next = path.includes('/revision/') ? answers.shift() : undefined
      if (next !== undefined) response.writeHead(...next).end()
      return next !== undefined
    }
    await fetchModel()
    assert.deepEqual(pauses, [7000, 55_000, 0, 8000])
    assert.match(told[0]!, /org\/tiny-model: 127\.0\.0\.1:\d+ answered 429; trying again in 7 s/)
  })

  test('after five failures in a row the part stays, and the same command is named', async () => {
    hub.trouble = ({ at, path, headers }, response, all) => {
      if (at !== 'storage' || !path.includes(WEIGHTS)) return false
      if (headers.range === undefined) sendAndCut(response, headers, all, 2000)
      else response.writeHead(502).end()
      return true
    }
    const message = await failure()
    assert.match(message, /model-00001.* answered 502 \(5 attempts\)\. The same command goes on/)
    assert.deepEqual(pauses, [1000, 2000, 4000, 8000])
    assert.deepEqual(await content(`${WEIGHTS}.part`), weights.subarray(0, 2000))
    assert.equal(JSON.parse(String(await content('.grasp-pull.json'))).complete, false)
  })

  test('a wait of more than ten minutes is not kept', async () => {
    hub.trouble = (_, response) => {
      response.writeHead(429, { 'retry-after': '3600' }).end()
      return true
    }
    assert.match(await failure(), /answered 429; the hub asks to come back in 60 minutes/)
    assert.deepEqual(pauses, [])
  })

  test('a silent connection is given up and taken up again', async () => {
    let silent = true
    hub.trouble = ({ at, path }, response, all) => {
      if (at !== 'storage' || !path.includes(WEIGHTS) || !silent) return false
      silent = false
      response.writeHead(200, { 'content-length': all.length }).write(all.subarray(0, 100))
      return true
    }
    await fetchModel({ silenceMs: 1500 })
    assert.deepEqual(ranges(WEIGHTS).slice(0, 2), [undefined, 'bytes=100-'])
    assert.match(
      told.join('\n'),
      /^model-00001.*: localhost:\d+ was silent for 1\.5 s; trying again in 1 s$/m,
    )
    assert.deepEqual(await content(WEIGHTS), weights)
  })

  test('an address of the storage that has expired is asked for anew', async () => {
    let expired = true
    hub.trouble = ({ at, path }, response) => {
      if (at !== 'storage' || !path.includes(WEIGHTS) || !expired) return false
      expired = false
      response.writeHead(403).end('expired')
      return true
    }
    await fetchModel()
    assert.equal(hub.paths('hub').filter(path => path.endsWith(`/${WEIGHTS}`)).length, 2)
  })
})

describe('what another attempt would not mend', () => {
  test('content that is not what the hub names is not kept', async () => {
    for (const name of [WEIGHTS, 'tokenizer.json']) {
      hub.trouble = ({ path, headers, at }, response, all) => {
        if (!path.includes(name) || (at === 'hub' && path.includes('/resolve/'))) return false
        const damaged = Buffer.from(all)
        damaged[10]! ^= 1
        sendRange(response, headers, damaged)
        return true
      }
      const kind = name === WEIGHTS ? 'sha256' : 'git blob id'
      assert.match(
        await failure(),
        new RegExp(`${name} has the ${kind} [0-9a-f]+, but the hub names [0-9a-f]+`),
      )
      assert.ok(!(await there()).some(entry => entry === name || entry === `${name}.part`))
      await rm(folder, { recursive: true })
    }
  })

  test('more bytes than announced, or another commit, end it', async () => {
    hub.trouble = ({ at, path }, response, all) => {
      if (at === 'storage' && path.includes(WEIGHTS)) response.end(Buffer.concat([all, all]))
      return at === 'storage' && path.includes(WEIGHTS)
    }
    assert.match(await failure(), /model-00001.*: more came than the \d+ bytes/)
    hub.trouble = ({ path }, response) => {
      if (path.includes('/resolve/')) response.writeHead(200, { 'x-repo-commit': 'f'.repeat(40) }).end()
      return path.includes('/resolve/')
    }
    assert.match(await failure(), /was asked for at commit 0123.*answered with commit ffff/)
  })

  test('refusals say what to do', async () => {
    const withoutToken = { access: { endpoint: hub.endpoint } }
    const missing = { repository: repository('org/missing', 'main') }
    assert.match(await failure(missing), /org\/missing is not on 127\.0\.0\.1:\d+, or is private/)
    const revision = { repository: repository(NAME, 'v9') }
    assert.match(await failure(revision), /org\/tiny-model has no branch, tag or commit v9/)
    hub.token = 'another'
    assert.match(await failure(), /refused the token \(Invalid credentials.*unset HF_TOKEN/)
    assert.match(await failure(withoutToken), /is private. Check the name; if it is private, set HF_TOKEN/)
    hub.gated = true
    const gated = await failure(withoutToken)
    assert.match(
      gated,
      /org\/tiny-model is gated: ask for access on http:\/\/127.*\/org\/tiny-model, and then set HF_TOKEN/,
    )
    hub.token = TOKEN
    hub.trouble = (_, response) => {
      response.writeHead(403, { 'x-error-message': 'Not\tfor you' }).end()
      return true
    }
    assert.match(await failure(), /refuses org\/tiny-model \(Not for you\): the token that was sent is not/)
    hub.trouble = ({ path }, response) => {
      if (path.includes('/resolve/')) response.writeHead(404, { 'x-error-code': 'EntryNotFound' }).end()
      return path.includes('/resolve/')
    }
    assert.match(await failure(), /has no file .* at 0123/)
    hub.trouble = (_, response) => {
      response.writeHead(418).end()
      return true
    }
    assert.match(await failure(), /answered 418 to org\/tiny-model/)
    assert.deepEqual(pauses, [])
  })

  test('a hub that cannot be reached is told at once', async () => {
    const gone = await HubServer.start(NAME, files)
    const { endpoint } = gone
    await gone[Symbol.asyncDispose]()
    const message = await failure({ access: { endpoint } })
    assert.match(message, /127\.0\.0\.1:\d+ cannot be reached: ECONNREFUSED; is this machine online/)
    // The port of mail.
    const barred = await failure({ access: { endpoint: 'http://127.0.0.1:25' } })
    assert.match(barred, /127\.0\.0\.1:25 has a port that is barred for the web/)
    assert.deepEqual(pauses, [])
  })

  test('names that would lead out of the folder are refused', async () => {
    for (const bad of [
      '../tokenizer.json',
      'a/../../tokenizer.json',
      '/tokenizer.json',
      'a\\..\\x',
      'C:x',
      'a//b',
      './x',
      'x\0',
      'x.part',
      '',
    ]) {
      hub.list = listing => ({
        ...listing,
        siblings: [...listing.siblings, { ...listing.siblings[0], rfilename: bad }],
      })
      assert.match(await failure({ include: ['*'] }), /gave no usable list .*: it names the file "/, bad)
    }
    await assert.rejects(readdir(folder), { code: 'ENOENT' })
    assert.deepEqual(await readdir(parent), [])
  })

  test('a list that is none is refused', async () => {
    for (const list of [
      { sha: 'main', siblings: [] },
      { sha: COMMIT },
      { sha: COMMIT, siblings: [{ rfilename: 'model.safetensors' }] },
    ]) {
      hub.list = () => list
      assert.match(await failure(), /gave no usable list of the files of org\/tiny-model/)
    }
    hub.trouble = (_, response) => {
      response.end('<html>')
      return true
    }
    assert.match(await failure(), /gave no usable list/)
  })

  test('redirects lead to web addresses, and to an end', async () => {
    hub.trouble = (_, response) => {
      response.writeHead(302, { location: 'file:///etc/passwd' }).end()
      return true
    }
    assert.match(await failure(), /redirects to what is no https address/)
    hub.trouble = ({ path }, response) => {
      response.writeHead(302, { location: `${path}x` }).end()
      return true
    }
    assert.match(await failure(), /redirects in a circle/)
  })

  test('a model that is larger than the disk is not begun', async () => {
    hub.list = listing => ({
      ...listing,
      siblings: listing.siblings.map(file =>
        file.lfs ? { ...file, lfs: { ...file.lfs, size: 1e15 } } : file,
      ),
    })
    assert.match(await failure(), /has \d+ MB free, and 2000000\d* MB are to come\. Free some space first/)
    assert.equal(hub.paths('hub').length, 1)
  })

  const noFull = !existsSync('/dev/full') && 'there is no /dev/full to be a full disk'
  test('a disk that is full ends it, with what to do', { skip: noFull }, async () => {
    await fetchModel()
    await rm(join(folder, WEIGHTS))
    await symlink('/dev/full', join(folder, `${WEIGHTS}.part`))
    assert.match(await failure(), /model: the disk is full\. Free some space; the same command goes on/)
  })

  test('a folder that is none, or cannot be made, is named', async () => {
    await writeFile(folder, '')
    const message = /model(\/below)? is a file, or below one; give a new or an empty folder/
    assert.match(await failure(), message)
    assert.match(await failure({ folder: join(folder, 'below') }), message)
  })
})
