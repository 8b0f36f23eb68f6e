/**
 * Words of any script, for matching: compatibility-normalised and lower case. A word is a run of letters,
 * marks and digits, apostrophes within it included; Chinese and Japanese, written without spaces, give one
 * word a character.
 */
const WORD =
  /[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}]|(?:(?![\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}])[\p{L}\p{M}\p{N}])+(?:'(?:(?![\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}])[\p{L}\p{M}\p{N}])+)*/gu

export function words(text: string): string[] {
  return text.normalize('NFKC').toLowerCase().replaceAll('’', "'").match(WORD) ?? []
}
