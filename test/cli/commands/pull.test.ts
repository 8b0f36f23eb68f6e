import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, readFileSync } from 'node:fs'
import { readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import { makeTinyModel, type TinyModel } from '../../helpers/tiny-model.ts'
import { COMMIT, HubServer } from '../../hub/hub-server.ts'
import { BIN, Workspace } from '../grasp.ts'

const NAME = 'org/tiny'
const TOKEN = 'hf_secretSECRETsecret'
const noSignals = process.platform === 'win32' && 'Windows has no SIGINT to send'

describe('grasp pull', () => {
  let model: TinyModel
  let hub: HubServer
  const environment = { ...process.env }
  before(async () => {
    model = await makeTinyModel()
    const names = await readdir(model.path)
    const files = await Promise.all(
      names.map(async name => [name, await readFile(join(model.path, name))] as const),
    )
    hub = await HubServer.start(NAME, Object.fromEntries(files))
    hub.token = TOKEN
    Object.assign(process.env, { HF_ENDPOINT: hub.endpoint, HF_TOKEN: TOKEN, HF_HOME: model.path })
  })
  after(async () => {
    process.env = environment
    await hub[Symbol.asyncDispose]()
    await model.remove()
  })

  test('fetches a model and prints where it is, and nothing a second time', async () => {
    using workspace = new Workspace()
    const { code, stdout, stderr } = await workspace.grasp('pull', NAME)
    assert.equal(code, 0, stderr)
    assert.match(
      stdout,
      new RegExp(`^org/tiny at commit ${COMMIT} is in models/org/tiny: \\d+ files, 0\\.\\d MB`),
    )
    assert.match(
      stdout,
      new RegExp(`set \`model: { path: models/org/tiny }\`.* grasp pull org/tiny --revision ${COMMIT}`, 's'),
    )
    assert.match(stderr, /^\[0:\d\d\] fetching org\/tiny {2}.*\d\/\d files/m)
    assert.ok(!`${stdout}${stderr}`.includes(TOKEN))
    const again = await workspace.grasp('pull', NAME, '--json', '--to', 'models/org/tiny', '--no-progress')
    const { path, ...rest } = JSON.parse(again.stdout)
    assert.equal(path, join(workspace.path, 'models/org/tiny'))
    assert.deepEqual([rest.commit, rest.fetchedBytes, again.stderr], [COMMIT, 0, ''])
  })

  test('failures end with 1, wrong names with 2', async () => {
    using workspace = new Workspace()
    const missing = await workspace.grasp('pull', 'org/other', '--no-progress')
    assert.deepEqual([missing.code, missing.stdout], [1, ''])
    assert.match(missing.stderr, /^error HUB_FAILED: org\/other is not on 127\.0\.0\.1:\d+, or is private/)
    const wrong = await workspace.grasp('pull', 'https://huggingface.co/org/tiny')
    assert.equal(wrong.code, 2)
    assert.match(wrong.stderr, /^error CONFIG_INVALID: "https:.*" is no repository; expected ORG\/NAME/m)
    const nowhere = await workspace.grasp('pull', 'org/tiny', '--to', '')
    assert.deepEqual([nowhere.code, nowhere.stderr], [2, 'error CONFIG_INVALID: --to names no folder\n'])
    assert.deepEqual(await readdir(workspace.path), [])
  })

  test('Ctrl-C leaves what has arrived, and the same command goes on', { skip: noSignals }, async () => {
    using workspace = new Workspace()
    const part = join(workspace.path, 'models/org/tiny/model.safetensors.part')
    hub.trouble = ({ at }, response, all) => {
      if (at === 'storage')
        response.writeHead(200, { 'content-length': all.length }).write(all.subarray(0, 7000))
      return at === 'storage'
    }
    const child = spawn(process.execPath, [BIN, 'pull', NAME], { cwd: workspace.path })
    let stderr = ''
    child.stderr.setEncoding('utf8').on('data', (text: string) => {
      stderr += text
    })
    const ended = once(child, 'close')
    while (!existsSync(part) || readFileSync(part).length < 7000)
      await new Promise(wait => setTimeout(wait, 20))
    child.kill('SIGINT')
    const [code] = await ended
    assert.equal(code, 130, stderr)
    assert.match(
      stderr,
      /error INTERRUPTED: stopped; the same command goes on from what is in models\/org\/tiny/,
    )
    hub.trouble = () => false
    hub.asked.length = 0
    assert.equal((await workspace.grasp('pull', NAME)).code, 0)
    const [storage] = hub.asked.filter(({ at }) => at === 'storage')
    assert.equal(storage!.headers.range, 'bytes=7000-')
    assert.ok(!existsSync(part))
  })
})
