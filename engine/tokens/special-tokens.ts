/** Special tokens by role, as tokenizer_config.json names them: `bos_token` → `<s>` and so on. */
export function specialTokens(tokenizerConfig: Readonly<Record<string, unknown>>): Record<string, string> {
  const tokens: Record<string, string> = {}
  for (const [name, value] of Object.entries(tokenizerConfig)) {
    if (!name.endsWith('_token')) continue
    // Written as a string, or as an object with settings.
    const text =
      typeof value === 'object' && value !== null ? (value as { content?: unknown }).content : value
    if (typeof text === 'string') tokens[name] = text
  }
  return tokens
}
