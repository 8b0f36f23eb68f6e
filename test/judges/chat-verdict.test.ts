import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { parseVerdict } from '../../judges/chat-verdict.ts'

describe('a verdict is found', () => {
  const cases: [string, string, number][] = [
    ['alone', '{"match_score": 2}', 2],
    ['as 2.0, which JSON does not tell from 2', '{"match_score": 2.0}', 2],
    ['among other fields', '{"reason": "fits } well", "match_score": 1}', 1],
    ['in a code fence', '```json\n{"match_score": 0}\n```', 0],
    ['in prose', 'Here is my verdict: {"match_score": 1}. Good luck {you}!', 1],
    ['in a fence in prose', 'Sure.\n```\n{\n  "match_score": 2\n}\n```\nDone.', 2],
    ['in prose, with braces and quotes in strings', 'So: {"why": "a } \\" { b", "match_score": 1} :}', 1],
    ['inside another object', '{"result": {"match_score": 1}}', 1],
    ['twice and equal', '{"match_score": 1}\n{"match_score": 1}', 1],
    [
      'after reasoning that weighs another score',
      '<think>perhaps {"match_score": 0}?</think>\n{"match_score": 2}',
      2,
    ],
    [
      'after reasoning whose start was in the prompt',
      'Maybe {"match_score": 0}.\n</think>\n{"match_score": 2}',
      2,
    ],
    ['whatever its strings quote', '{"reason": "it says {\\"match_score\\": 2}", "match_score": 0}', 0],
    ['quoting in prose around', 'Verdict: {"why": "it says {\\"match_score\\": 2}", "match_score": 0}', 0],
  ]
  for (const [name, reply, score] of cases) {
    it(name, () => assert.deepEqual(parseVerdict(reply), { score }))
  }
})

describe('no verdict is made up', () => {
  const cases: [string, string, RegExp][] = [
    ['of nothing', ' \n', /empty reply/],
    ['of a bare number', '2', /no JSON with match_score: 2/],
    ['of prose', 'The match_score is 2.', /no JSON/],
    ['of an array', '[{"score": 2}]', /no JSON/],
    ['of JSON cut off', '{"match_score": 2', /no JSON/],
    ['of a string', '{"match_score": "2"}', /match_score is "2", expected the number 0, 1 or 2/],
    ['of a fraction', '{"match_score": 1.5}', /is 1\.5/],
    ['of a number out of range', '{"match_score": 3}', /is 3/],
    ['of a negative number', '{"match_score": -1}', /is -1/],
    ['of true', '{"match_score": true}', /is true/],
    ['of null', '{"match_score": null}', /is null/],
    ['of an object', '{"match_score": {"value": 2}}', /is \{"value":2\}/],
    [
      'of two that differ',
      'It says {"match_score": 2}, but: {"match_score": 0}',
      /several match_scores: 2, 0/,
    ],
    ['of reasoning without an end', '<think>I lean to {"match_score": 2}', /empty reply/],
  ]
  for (const [name, reply, reason] of cases) {
    it(name, () => {
      const verdict = parseVerdict(reply)
      assert.ok('unscored' in verdict, JSON.stringify(verdict))
      assert.match(verdict.unscored, reason)
    })
  }

  it('and a reply of nothing but braces is given up soon', () => {
    assert.match((parseVerdict('{'.repeat(1_000_000)) as { unscored: string }).unscored, /no JSON/)
    assert.match((parseVerdict('{"a":'.repeat(200_000)) as { unscored: string }).unscored, /no JSON/)
  })
})
