import assert from 'node:assert/strict'
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { hubAccess } from '../../hub/access.ts'

let home: string
before(async () => {
  home = await mkdtemp(join(tmpdir(), 'grasp-hub-home-'))
})
after(() => rm(home, { recursive: true }))

test('the hub is huggingface.co, or what HF_ENDPOINT says', async () => {
  const endpoint = async (text?: string) => (await hubAccess({ HF_HOME: home, HF_ENDPOINT: text })).endpoint
  assert.equal(await endpoint(), 'https://huggingface.co')
  assert.equal(await endpoint(''), 'https://huggingface.co')
  assert.equal(await endpoint('https://hub.example/api/mirror/'), 'https://hub.example/api/mirror')
  for (const [wrong, says] of [
    ['hub.example', /HF_ENDPOINT is no URL/],
    ['ftp://hub.example', /HF_ENDPOINT begins with ftp:/],
    ['https://me:secret@hub.example', /no credentials/],
    ['https://hub.example/?x', /no credentials, query or fragment/],
  ] as const) {
    await assert.rejects(endpoint(wrong), (error: Error & { code: string }) => {
      assert.equal(error.code, 'CONFIG_INVALID')
      assert.match(error.message, says)
      assert.ok(!error.message.includes('secret'))
      return true
    })
  }
})

test("the token is HF_TOKEN's, else that of the file, else there is none", async () => {
  const token = async (env: NodeJS.ProcessEnv) => (await hubAccess(env)).token
  assert.equal(await token({ HF_HOME: home }), undefined)
  await writeFile(join(home, 'token'), 'hf_file\n')
  assert.equal(await token({ HF_HOME: home }), 'hf_file')
  assert.equal(await token({ HF_HOME: home, HF_TOKEN: ' hf_env ' }), 'hf_env')
  assert.equal(await token({ HF_HOME: home, HF_TOKEN: '' }), 'hf_file')
  await mkdir(join(home, 'cache/huggingface'), { recursive: true })
  await writeFile(join(home, 'cache/huggingface/token'), 'hf_cache')
  assert.equal(await token({ XDG_CACHE_HOME: join(home, 'cache') }), 'hf_cache')
  await writeFile(join(home, 'other'), 'hf_other')
  assert.equal(await token({ HF_HOME: home, HF_TOKEN_PATH: join(home, 'other') }), 'hf_other')
})

test('what is no token is refused without being shown', async () => {
  for (const text of ['hf_se cret', 'hf_secret\nhf_secret', 'hf_sécret']) {
    await assert.rejects(hubAccess({ HF_HOME: home, HF_TOKEN: text }), (error: Error) => {
      assert.match(error.message, /^HF_TOKEN holds no token: expected one line without spaces$/)
      return true
    })
  }
  await assert.rejects(hubAccess({ HF_TOKEN_PATH: home }), {
    code: 'CONFIG_INVALID',
    message: /cannot be read/,
  })
})
