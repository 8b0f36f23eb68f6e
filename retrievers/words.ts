/**
 * Words of any script, for matching: compatibility-normalised and lower case. A word is a run of letters,
 * marks and digits, apostrophes within it included; Chinese and Japanese, written without spaces, give one
 * word a character.
 */
const UNSPACED = String.raw`\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}`
const START = String.raw`[[\p{L}\p{N}]--[${UNSPACED}]]`
const REST = String.raw`[[\p{L}\p{M}\p{N}]--[${UNSPACED}]]`
const WORD = new RegExp(`[${UNSPACED}]|${START}${REST}*(?:'${REST}+)*`, 'gv')

export function words(text: string): string[] {
  return text.normalize('NFKC').toLowerCase().replaceAll('’', "'").match(WORD) ?? []
}
