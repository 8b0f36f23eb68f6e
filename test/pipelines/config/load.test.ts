import assert from 'node:assert/strict'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { availableParallelism, tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import { GraspError } from '../../../errors/grasp-error.ts'
import { loadConfig } from '../../../pipelines/config/load.ts'
import { ANSWER_PROMPT } from '../../../prompts/prompt.ts'

const MINIMAL =
  'run: lab\nmodel:\n  path: backbone\ndata:\n  train: train.json\nprompt: p.txt\njudge:\n  kind: lexical\n'

describe('loadConfig', () => {
  let folder: string
  before(() => {
    folder = mkdtempSync(join(tmpdir(), 'grasp-config-'))
    mkdirSync(join(folder, 'sub'))
  })
  after(() => rmSync(folder, { recursive: true }))

  function load(text: string, set: string[] = []) {
    writeFileSync(join(folder, 'sub', 'c.yaml'), text)
    return loadConfig({ file: 'sub/c.yaml', set, cwd: folder })
  }
  /** The message of the error that loading must end in. */
  function fault(text: string, set: string[] = []): string {
    let message = ''
    assert.throws(
      () => load(text, set),
      (error: unknown) => {
        assert.ok(error instanceof GraspError)
        assert.equal(error.code, 'CONFIG_INVALID')
        message = error.message
        return true
      },
    )
    return message
  }

  test('fills in defaults and makes every path absolute', () => {
    const config = load(MINIMAL)
    assert.equal(config.validation.tau, 1)
    assert.equal(config.rollout.lag, 0)
    assert.equal(config.scoring.encoding, 'factored')
    assert.deepEqual(config.training.betas, [0.9, 0.999])
    assert.equal(config.model.threads, availableParallelism())
    assert.equal(config.model.path, join(folder, 'sub', 'backbone'))
    assert.equal(config.data.train, join(folder, 'sub', 'train.json'))
    assert.equal(config.prompt, join(folder, 'sub', 'p.txt'))
    assert.equal(config.log.path, join(folder, '.grasp', 'logs'))
    assert.equal(config.output.path, join(folder, '.grasp', 'lab'))
  })

  test("without a prompt file the package's own is used", () => {
    assert.equal(load(MINIMAL.replace('prompt: p.txt\n', '')).prompt, ANSWER_PROMPT)
  })

  test('what a run writes is relative to the working directory, also when the file says where', () => {
    const config = load(`${MINIMAL}log: { path: here/log }\noutput: { path: out }\n`)
    assert.equal(config.log.path, join(folder, 'here', 'log'))
    assert.equal(config.output.path, join(folder, 'out'))
  })

  test('--set wins over the file, the later over the earlier, and its paths are those of the person typing', () => {
    const config = load(`${MINIMAL}training: { seed: 5 }\n`, [
      'training.seed=2',
      'training.seed=3',
      'training.betas=[0.8, 0.9]',
      'model.path=other',
      'log.path=1',
      'run=7',
    ])
    assert.equal(config.training.seed, 3)
    assert.deepEqual(config.training.betas, [0.8, 0.9])
    assert.equal(config.model.path, join(folder, 'other'))
    // Text where text is expected, although YAML would read a number.
    assert.equal(config.log.path, join(folder, '1'))
    assert.equal(config.run, '7')
  })

  test('a value with an equals sign, a colon or spaces is taken whole', () => {
    const config = load(MINIMAL, ['data.test=a=b: c d.json'])
    assert.equal(config.data.test, join(folder, 'a=b: c d.json'))
  })

  test('a section can be set as a whole', () => {
    const config = load(MINIMAL, ['judge={kind: chat, url: "http://127.0.0.1:1/v1", model: m}'])
    assert.equal(config.judge.kind, 'chat')
    assert.equal(config.judge.kind === 'chat' && config.judge.retries, 3)
  })

  test('a section whose keys are all commented out counts as absent', () => {
    assert.equal(load(`${MINIMAL}validation:\n  # tau: 1\n`).validation.tau, 1)
  })

  test('τ = 2 names file, line, key, value and range', () => {
    assert.equal(
      fault(`${MINIMAL}validation:\n  tau: 2\n`),
      'sub/c.yaml:10: validation.tau is 2; expected a number from 0 to 1',
    )
  })

  test('an unknown key is an error that suggests the nearest', () => {
    const wrong = `${MINIMAL}training:\n  learning_rate: 0.1\n`
    assert.equal(
      fault(wrong),
      'sub/c.yaml:10: training.learning_rate is not a configuration key; did you mean training.learningRate?',
    )
    assert.match(fault(`${MINIMAL}modle: x\n`), /modle is not a configuration key; did you mean model\?/)
    assert.match(fault(`${MINIMAL}tau: 1\n`), /did you mean validation\.tau\?/)
    assert.match(fault(`${MINIMAL}wholly-other: 1\n`), /known keys: run, log, output, model/)
    assert.match(fault(MINIMAL, ['rollout.lagg=1']), /^--set rollout\.lagg=1: .*did you mean rollout\.lag\?/)
    assert.match(fault(MINIMAL, ['nowhere.at.all=1']), /^--set nowhere\.at\.all=1: nowhere is not/)
    assert.match(fault(MINIMAL, ['__proto__.polluted=1']), /^--set .*__proto__ is not a configuration key/)
    assert.equal(({} as Record<string, unknown>).polluted, undefined)
  })

  test('a key of another kind of judge is unknown', () => {
    assert.match(
      fault(MINIMAL.replace('kind: lexical', 'kind: lexical\n  url: http://x/')),
      /:9: judge\.url is not a configuration key/,
    )
    assert.match(
      fault(MINIMAL, ['judge.kind=lexicall']),
      /judge\.kind is 'lexicall'; expected one of 'lexical', 'chat'/,
    )
  })

  test('everything that is wrong is listed at once, in the order of the file', () => {
    const message = fault(
      'run: a b\nmodel: { path: m, threads: 0 }\ndata: { train: 5 }\nprompt: p\njudge: { kind: lexical }\n' +
        'scoring: { dtype: f64 }\ntraining: { betas: [1], learningRate: 0, clip: .inf }\n',
    )
    assert.deepEqual(message.split('\n  '), [
      '7 things are wrong',
      "sub/c.yaml:1: run is 'a b'; expected a name of letters, digits, dots, hyphens and underscores (at most 100)",
      'sub/c.yaml:2: model.threads is 0; expected an integer from 1 to 1024',
      'sub/c.yaml:3: data.train is 5; expected a path',
      "sub/c.yaml:6: scoring.dtype is 'f64'; expected one of 'f32', 'f16', 'bf16'",
      'sub/c.yaml:7: training.betas is [1]; expected a list of 2: each a number of at least 0 and below 1',
      'sub/c.yaml:7: training.learningRate is 0; expected a number above 0 and at most 1',
      'sub/c.yaml:7: training.clip is Infinity; expected a number of at least 0',
    ])
  })

  test('what is missing is named, with what it is for', () => {
    const message = fault('run: x\n')
    assert.match(message, /model is missing; expected a section with keys \(path, device/)
    assert.match(message, /judge is missing; expected a section with keys \(kind, /)
    assert.match(
      fault(MINIMAL.replace('path: backbone', 'threads: 1')),
      /model\.path is missing; expected a path\. A Hugging Face directory/,
    )
    assert.match(
      fault(`${MINIMAL}training: { schedule: cosine }\n`),
      /:9: training\.totalUpdates is missing, but training\.schedule is cosine; expected an integer/,
    )
    assert.match(
      fault(`${MINIMAL}training: { warmup: 0.1 }\n`),
      /:9: training\.totalUpdates is missing, but training\.warmup is 0\.1, a part of it/,
    )
    assert.match(
      fault(`${MINIMAL}training: { warmup: 1.5 }\n`),
      /:9: training\.warmup is 1\.5, neither a whole number of updates nor a part of them below 1/,
    )
    assert.match(
      fault(`${MINIMAL}retrieval: { kind: dense }\n`),
      /:9: retrieval\.dense is missing, but retrieval\.kind is dense/,
    )
    assert.match(fault(''), /run is missing/)
  })

  test('an adapter has a rank, a target, and no dropout', () => {
    const odd = fault(`${MINIMAL}training: { lora: { rank: 1.5, dropout: 0.1, targets: [] } }\n`)
    assert.match(odd, /training\.lora\.rank is 1\.5; expected an integer from 0 to 1024/)
    assert.match(odd, /training\.lora\.dropout is 0\.1; expected 0$/m)
    assert.match(odd, /training\.lora\.targets is \[\]; expected a list of at least 1: each a text/)
    assert.match(fault(`${MINIMAL}training: { optimiserState: f16 }\n`), /expected one of 'f32', 'bf16'/)
    assert.match(
      fault(`${MINIMAL}training: { optimiserState: bf16 }\n`, ['model.device=webgpu']),
      /training\.optimiserState.*bf16 is for model\.device cpu; with webgpu it must be f32$/,
    )
  })

  test('an item of a list is named, with what it may be', () => {
    assert.match(
      fault(`${MINIMAL}rollout: { stop: [''] }\n`),
      /rollout\.stop\[0\] is ''; expected a text that is not empty$/,
    )
  })

  test('a warm-up ends before the schedule does', () => {
    assert.match(
      fault(`${MINIMAL}training: { schedule: linear, warmup: 9, totalUpdates: 8 }\n`),
      /training\.warmup is 9, more than training\.totalUpdates, which is 8: the rate would never get to its peak$/,
    )
  })

  test('broken YAML names line and column', () => {
    assert.match(fault('run: x\nmodel: [1, 2\n'), /^sub\/c\.yaml:\d+:\d+: not valid YAML: /)
    assert.match(fault('run: x\nrun: y\n'), /^sub\/c\.yaml:2:1: not valid YAML: Map keys must be unique/)
    assert.match(fault('- a\n'), /holds a list; expected keys and values/)
    assert.match(fault('just text\n'), /holds 'just text'; expected keys and values/)
  })

  test('a wrong --set argument says how it should be', () => {
    assert.match(fault(MINIMAL, ['training.seed']), /^--set training\.seed: expected key=value/)
    assert.match(fault(MINIMAL, ['training.seed=']), /no value after '=' for training\.seed/)
    // No secret, although its name ends like one.
    assert.match(fault(MINIMAL, ['model.tokensPerPass=0']), /^--set model\.tokensPerPass=0: /)
    assert.match(fault(MINIMAL, ['.a=1']), /'\.a' is not a key path/)
    assert.match(fault(MINIMAL, ['training.betas=[1']), /the value cannot be read/)
    assert.match(
      fault(MINIMAL, ['training.seed=1.5']),
      /training\.seed is 1\.5; expected an integer of at least 0/,
    )
  })

  test('no file, a folder', () => {
    assert.throws(() => loadConfig({ cwd: folder }), /there is no such configuration file in .*grasp init/)
    assert.throws(
      () => loadConfig({ cwd: folder, file: 'none.yaml' }),
      /^GraspError: none\.yaml: there is no such configuration file$/,
    )
    assert.throws(() => loadConfig({ cwd: folder, file: 'sub' }), /sub: is a folder, expected a YAML file/)
  })

  test('a byte order mark and CRLF are fine', () => {
    assert.equal(load(`\uFEFF${MINIMAL.replaceAll('\n', '\r\n')}`).run, 'lab')
  })
})
