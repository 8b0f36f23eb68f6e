import assert from 'node:assert/strict'
import { it } from 'node:test'
import { words } from '../../retrievers/words.ts'

const cases: [string, string, string[]][] = [
  ['English, case and punctuation', 'I LOVE Jazz-funk (1974)!', ['i', 'love', 'jazz', 'funk', '1974']],
  ['apostrophes of both kinds', "don't don’t 'quoted'", ["don't", "don't", 'quoted']],
  ['composed and decomposed accents alike', 'café cafe\u0301', ['café', 'café']],
  ['compatibility forms', 'ﬁne Ａ１', ['fine', 'a1']],
  ['Greek, Cyrillic, Hebrew, Arabic', 'Καλή Привет שלום مرحبا', ['καλή', 'привет', 'שלום', 'مرحبا']],
  ['Hindi, whose vowels are marks', 'नमस्ते दुनिया', ['नमस्ते', 'दुनिया']],
  ['Korean, written with spaces', '한국어 공부', ['한국어', '공부']],
  [
    'Chinese and Japanese, a word a character',
    '我喜欢茶。カメラ2台',
    ['我', '喜', '欢', '茶', 'カ', 'メ', 'ラ', '2', '台'],
  ],
  ['a mixed run', 'iPhone電池', ['iphone', '電', '池']],
  ['emoji and symbols, which are no words', '🎉 → ❤️ …', []],
  ['nothing', '', []],
  ['half a surrogate pair', 'a\ud800b', ['a', 'b']],
]
for (const [name, text, expected] of cases) {
  it(`finds words in ${name}`, () => assert.deepEqual(words(text), expected))
}
