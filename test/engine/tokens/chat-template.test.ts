import assert from 'node:assert/strict'
import { test } from 'node:test'
import { ChatTemplate } from '../../../engine/tokens/chat-template.ts'

/** Ten thousand million rounds. */
const ENDLESS = '{% for a in range(100000) %}{% for b in range(100000) %}{% endfor %}{% endfor %}'
const PLAIN = '{% for message in messages %}[{{ message.role }}] {{ message.content }}{% endfor %}'
const chat = (count: number) =>
  Array.from({ length: count }, (_, i) => ({ role: 'user' as const, content: `${i}` }))
const unending = { code: 'MODEL_INVALID', message: /^t: the chat template is not done after 0.2 s.*loop/ }

test('a template that loops for ever is refused when it is loaded', () => {
  assert.throws(() => new ChatTemplate('t', ENDLESS + PLAIN, {}, 0.2), unending)
})

test('a template that loops for ever on some chats ends there, and goes on with others', () => {
  const template = new ChatTemplate(
    't',
    `{% if messages | length > 2 %}${ENDLESS}{% endif %}${PLAIN}`,
    {},
    0.2,
  )
  template.check()
  assert.equal(template.render(chat(1)), '[user] 0')
  assert.throws(() => template.render(chat(3)), unending)
  assert.equal(template.render(chat(2)), '[user] 0[user] 1')
})

test('a template that calls itself without end is refused', () => {
  const source = '{% macro again() %}{{ again() }}{% endmacro %}{{ again() }}'
  const template = new ChatTemplate('t', source, {})
  assert.throws(() => template.check(), {
    code: 'MODEL_INVALID',
    message: /the chat template fails on a chat of one message/,
  })
})

test('a range is that of Python, and no longer than in the sandbox of Jinja', () => {
  const render = (range: string) =>
    new ChatTemplate('t', `{{ ${range} | join(',') }}`, {}).render([{ role: 'user', content: '' }])
  assert.equal(render('range(3)'), '0,1,2')
  assert.equal(render('range(2, 8, 3)'), '2,5')
  assert.equal(render('range(3, 0, -1)'), '3,2,1')
  assert.equal(render('range(3, 0)'), '')
  assert.equal(render('[range(100000) | length]'), '100000')
  const refused = { code: 'PROMPT_INVALID', message: /range\(\) of more than 100000 numbers/ }
  assert.throws(() => render('range(100001)'), refused)
  assert.throws(() => render('range(0, 5, 0)'), refused)
})
