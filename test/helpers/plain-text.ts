/**
 * A chat template that gives the text of a chat of one assistant's turn as it is, and hands all others on: so the ids
 * of texts can be held against those of other programs with the same tokenizer that encodes chats.
 */
import type { ChatTokenizer } from '../../engine/tokens/chat-tokenizer.ts'
import type { Companions } from '../../engine/weights/companions.ts'

export function withPlainText(companions: Companions, template: string): Companions {
  const plain = "messages | length == 1 and messages[0]['role'] == 'assistant'"
  const source = `{% if ${plain} %}{{ messages[0]['content'] }}{% else %}${template}{% endif %}`
  return new Map([...companions, ['chat_template.jinja', Buffer.from(source)] as const])
}

export function textIds(tokenizer: ChatTokenizer, text: string): number[] {
  return [...tokenizer.encodeChat([{ role: 'assistant', content: text }])]
}

/** A companion's JSON. */
export function companionJson(companions: Companions, name: string) {
  return JSON.parse(new TextDecoder().decode(companions.get(name)))
}
