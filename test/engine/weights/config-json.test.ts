import assert from 'node:assert/strict'
import { test } from 'node:test'
import { configJson } from '../../../engine/weights/config-json.ts'

test('what transformers wants as a float is written as one, all else as it is', () => {
  const config = {
    final_logit_softcapping: 30,
    attn_logit_softcapping: null,
    rms_norm_eps: 1e-6,
    hidden_size: 64,
    nested: { initializer_range: 1 },
    text: '"1"',
  }
  const written = configJson(config).toString()
  assert.deepEqual(JSON.parse(written), config)
  assert.match(written, /"final_logit_softcapping": 30\.0,/)
  assert.match(written, /"initializer_range": 1\.0/)
  assert.match(written, /"hidden_size": 64,/)
  assert.equal(written.at(-1), '\n')
})
