/** config.json as text. */
import type { RawConfig } from './model-config.ts'

/** What transformers 5 types as float and refuses as an integer. JavaScript does not tell 30.0 from 30. */
const FLOATS = new Set([
  'attn_logit_softcapping',
  'final_logit_softcapping',
  'initializer_range',
  'rms_norm_eps',
])

/** A character of private use, which stands in no config.json. */
const MARK = '\u{F8FF}'

export function configJson(config: RawConfig): Buffer {
  const text = JSON.stringify(
    config,
    (key, value) => (FLOATS.has(key) && Number.isInteger(value) ? `${MARK}${value}.0` : value),
    2,
  )
  return Buffer.from(`${text.replaceAll(new RegExp(`"${MARK}(.*?)"`, 'g'), '$1')}\n`)
}
