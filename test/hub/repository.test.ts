import assert from 'node:assert/strict'
import { test } from 'node:test'
import { repository } from '../../hub/repository.ts'

test('names of repositories and revisions', () => {
  for (const name of ['gpt2', 'HuggingFaceTB/SmolLM2-135M-Instruct', 'a/b', 'o_rg/v1.5-x_']) {
    assert.equal(repository(name, 'refs/pr/1').name, name)
  }
})

test('what cannot be one is refused with an example', () => {
  const wrong = [
    '',
    '/',
    'a/',
    '/b',
    'a/b/c',
    '../b',
    'a/..',
    'a/.b',
    'a/b.',
    'a--b/c',
    'https://huggingface.co/a/b',
    'a b',
    'a/b?x',
    'a/b@main',
    `a/${'b'.repeat(97)}`,
  ]
  for (const name of wrong) {
    assert.throws(() => repository(name, 'main'), {
      code: 'CONFIG_INVALID',
      message: /expected ORG\/NAME, such as/,
    })
  }
  for (const revision of ['', 'a b', 'a..b', 'x\n', 'x'.repeat(256)]) {
    assert.throws(() => repository('a/b', revision), { code: 'CONFIG_INVALID', message: /is no revision/ })
  }
})
