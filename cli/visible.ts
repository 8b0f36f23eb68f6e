/**
 * Text for a terminal, with control characters spelled out (`\x1b`): what models, data and records hold is not to move
 * the cursor, retitle the window or hide a line. Line breaks and tabs stay.
 */
export function visible(text: string): string {
  return text
    .replaceAll('\r\n', '\n')
    .replace(/\p{Cc}/gu, character =>
      character === '\n' || character === '\t'
        ? character
        : `\\x${character.charCodeAt(0).toString(16).padStart(2, '0')}`,
    )
}
