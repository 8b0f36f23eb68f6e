/**
 * What users get wrong, tried one by one with the real command line. What condemns the run ends it with one clear
 * message and a non-zero exit; what condemns one item leaves a dead letter while the rest is trained on.
 */
import assert from 'node:assert/strict'
import { chmod, cp, mkdir, readFile, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { Tensor } from 'onnxruntime-node'
import { openLmdbLog } from '../bus/lmdb/log.ts'
import { readSafetensors, writeSafetensors } from '../engine/weights/safetensors.ts'
import { grasp, makeTinyRun, runToEnd, type TinyRun, tinyItem } from './helpers/tiny-run.ts'

let run: TinyRun
before(async () => {
  run = await makeTinyRun(4)
})
after(() => run.remove())

const line = (item: unknown) => `${JSON.stringify(item)}\n`

interface FatalCase {
  readonly name: string
  /** Prepares files in the case's folder, returns `--set` values. */
  readonly arrange: (folder: string) => Promise<readonly string[]>
  readonly exit: 1 | 2
  readonly says: readonly RegExp[]
}

/** A copy of the model in which one thing is wrong. */
async function brokenModel(
  folder: string,
  damage: (model: string) => Promise<void>,
): Promise<readonly string[]> {
  const model = join(folder, 'model')
  await cp(join(run.folder, 'model'), model, { recursive: true })
  await damage(model)
  return [`model.path=${model}`]
}

const trainFile = (content: string) => async (folder: string) => {
  const file = join(folder, 'mine.jsonl')
  await writeFile(file, content)
  return [`data.train=${file}`]
}

const fatal: readonly FatalCase[] = [
  {
    name: 'no data file',
    arrange: async folder => [`data.train=${join(folder, 'none.jsonl')}`],
    exit: 2,
    says: [/none\.jsonl/, /no such file|does not exist|cannot be read/i],
  },
  {
    name: 'an empty data file',
    arrange: trainFile(''),
    exit: 1,
    says: [/mine\.jsonl/, /empty|holds no items/],
  },
  {
    name: 'a JSON array that is cut off',
    arrange: trainFile(JSON.stringify([tinyItem('a'), tinyItem('b')]).slice(0, -20)),
    exit: 1,
    says: [/mine\.jsonl/, /cut off|ends/, /byte|line/],
  },
  {
    name: 'a model directory without a tokenizer',
    arrange: folder => brokenModel(folder, model => rm(join(model, 'tokenizer.json'))),
    exit: 1,
    says: [/MODEL_INVALID/, /tokenizer\.json/],
  },
  {
    name: 'a tensor of the wrong shape',
    arrange: folder =>
      brokenModel(folder, async model => {
        const file = join(model, 'model.safetensors')
        const weights = await readSafetensors(file)
        weights.set('model.norm.weight', new Tensor('float32', new Float32Array(3), [3]))
        await writeSafetensors(file, weights, { dtype: 'f32' })
      }),
    exit: 1,
    says: [/MODEL_INVALID/, /model\.norm\.weight/, /\[3\]/],
  },
  {
    name: 'a weights file that is cut off',
    arrange: folder =>
      brokenModel(folder, async model => {
        const file = join(model, 'model.safetensors')
        await writeFile(file, (await readFile(file)).subarray(0, 5000))
      }),
    exit: 1,
    says: [/MODEL_INVALID/, /model\.safetensors/],
  },
  {
    name: 'τ = 2',
    arrange: async () => ['validation.tau=2'],
    exit: 2,
    says: [/validation\.tau/, /2/, /0.*1/],
  },
  {
    name: 'an unknown key',
    arrange: async () => ['training.learningrate=1'],
    exit: 2,
    says: [/training\.learningrate/, /learningRate/],
  },
  {
    name: 'a log path that is a file',
    arrange: async folder => {
      await writeFile(join(folder, 'log'), '')
      return [`log.path=${join(folder, 'log')}`]
    },
    exit: 1,
    says: [/LOG_UNAVAILABLE/, /log/],
  },
]

for (const { name, arrange, exit, says } of fatal) {
  test(`${name}: one clear message and exit ${exit}`, async () => {
    const folder = join(run.folder, name.replaceAll(/\W+/g, '-'))
    await mkdir(folder, { recursive: true })
    const sets = (await arrange(folder)).flatMap(setting => ['--set', setting])
    const { code, stdout, stderr } = await grasp(['run', '--config', run.config, ...sets], { cwd: folder })
    assert.equal(code, exit, stderr)
    assert.equal(stdout, '')
    for (const pattern of says) assert.match(stderr, pattern)
    assert.doesNotMatch(stderr, /\n\s+at /, 'a stack trace is not a message')
  })
}

test('a log folder that cannot be written to: one clear message and exit 1', async () => {
  let folder = join(run.folder, 'read-only')
  await mkdir(folder, { recursive: true })
  await chmod(folder, 0o500)
  // File permissions do not bind the superuser; the kernel's own folders do.
  if (process.getuid?.() === 0) folder = '/sys/kernel'
  const args = ['run', '--config', run.config, '--set', `log.path=${join(folder, 'log')}`]
  const { code, stderr } = await grasp(args, { cwd: run.folder })
  assert.equal(code, 1, stderr)
  assert.match(stderr, /LOG_UNAVAILABLE/)
  assert.ok(stderr.includes(folder), stderr)
})

test('items that are wrong become dead letters with a message each; the rest is trained on', async () => {
  const folder = join(run.folder, 'items')
  await mkdir(folder, { recursive: true })
  const { question: _, ...noQuestion } = tinyItem('no-question')
  const cases: readonly (readonly [item: unknown, says: RegExp])[] = [
    [noQuestion, /question is missing/],
    [tinyItem('empty-profile', { profile: [] }), /profile is an empty list/],
    [tinyItem('no-aspects', { rubric_aspects: [] }), /rubric_aspects is an empty list/],
    [
      tinyItem('odd-aspect', { rubric_aspects: [{ aspect: 7, reason: '', evidence: '' }] }),
      /rubric_aspects\[0\]\.aspect is 7/,
    ],
    [
      tinyItem('large', { profile: [{ id: 'p', text: 'x'.repeat(2 << 20) }] }),
      /profile\[0\]\.text has 2097152 bytes/,
    ],
    [tinyItem('good1'), /id 'good1' was already used/],
    [tinyItem('no-text', { profile: [{ id: 'p' }] }), /profile\[0\]\.text is missing/],
    [
      tinyItem('long', { profile: [{ id: 'p', text: 'a long post '.repeat(200) }] }),
      /prompt has \d+ tokens.*context holds 256/,
    ],
  ]
  const scripts = tinyItem('scripts', {
    question: 'どこで泳げますか？ 🏊‍♀️',
    profile: [{ id: 'p', text: 'أحب السباحة 🌊 и зимой тоже' }],
  })
  const file = join(folder, 'items.jsonl')
  const good = [tinyItem('good1'), scripts, tinyItem('good2'), tinyItem('good3')]
  await writeFile(
    file,
    `${[...good, ...cases.map(([item]) => item)].map(line).join('')}{"id": "cut", "quest\n`,
  )
  const result = await runToEnd(run, 'items', [`data.train=${file}`])
  assert.deepEqual(result.instances, { seen: 4, kept: 4 })
  assert.equal(result.updates, 1)

  const log = await openLmdbLog({ path: join(folder, '.grasp/logs'), run: 'tiny', readOnly: true })
  try {
    const messages: string[] = []
    for await (const { value } of log.scan('deadletters')) messages.push(`${value!.code} ${value!.message}`)
    assert.equal(messages.length, cases.length + 1, messages.join('\n'))
    for (const [, says] of [...cases, [undefined, /items\.jsonl.*line 13.*not valid JSON/] as const]) {
      assert.ok(
        messages.some(message => says.test(message)),
        `${says} in none of:\n${messages.join('\n')}`,
      )
    }
  } finally {
    await log.close()
  }
})
