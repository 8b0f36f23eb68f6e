/** Prompts of natural text, for decoders whose speed depends on what is said. */
import { readFileSync } from 'node:fs'
import { ChatTokenizer } from '../../engine/tokens/chat-tokenizer.ts'
import type { ModelFiles } from '../../engine/weights/model-files.ts'

interface Item {
  readonly question: string
  readonly narrative: string
  readonly profile: readonly { readonly text: string }[]
}

/** Token ids of the household's posts and questions, `length` of each of 64; no two begin alike. */
export async function naturalPrompts(files: ModelFiles, length: number): Promise<number[][]> {
  const tokenizer = ChatTokenizer.load(files, files.rawConfig, files.config.vocabularySize)
  const file = new URL('../../examples/household/data/train.jsonl', import.meta.url)
  const items: Item[] = readFileSync(file, 'utf8')
    .trimEnd()
    .split('\n')
    .map(line => JSON.parse(line))
  const chat = (content: string) => [...tokenizer.encodeChat([{ role: 'user', content }])]
  // What the template puts around a text is the same for all.
  const [a, b] = [chat('a'), chat('b')]
  const before = a.findIndex((id, i) => id !== b[i])
  const after = a.length - before - 1
  const bodies = items.map(({ question, narrative, profile }) => {
    const text = [question, narrative, ...profile.map(post => post.text)].join(' ')
    const ids = chat(text)
    return ids.slice(before, ids.length - after)
  })
  return bodies.map((_, number) => {
    const ids: number[] = []
    for (let i = number; ids.length < length; i++) ids.push(...bodies[i % bodies.length]!)
    return ids.slice(0, length)
  })
}
