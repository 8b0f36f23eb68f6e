/**
 * Reads a configuration: a YAML 1.2 file, changed by `--set` arguments, checked as a whole.
 *
 * Paths of what the run reads (model, data, prompt, judge key, embedding model, API key file) are relative to
 * the configuration file, so that it works from any folder; given by `--set` they are relative to the working
 * directory, where the person typing is. Paths of what the run writes are relative to the working directory.
 */
import { readFileSync } from 'node:fs'
import { dirname, join, resolve } from 'node:path'
import { type Document, isMap, isScalar, LineCounter, parseDocument } from 'yaml'
import { describeError, GraspError } from '../../errors/grasp-error.ts'
import { ANSWER_PROMPT } from '../../prompts/prompt.ts'
import { type Config, configSchema } from './config.ts'
import { applyOverride, type Override, parseOverride, shownArgument } from './overrides.ts'
import { type Problem, problemsOf, show } from './problems.ts'
import { type KeyPath, shapeAt, walk } from './shape.ts'

export interface LoadOptions {
  /** The YAML file; by default `grasp.yaml` of the working directory. */
  readonly file?: string | undefined
  /** `key=value` arguments, later ones win. */
  readonly set?: readonly string[] | undefined
  /** The working directory; by default the process's. */
  readonly cwd?: string | undefined
}

type Section = Record<string, unknown>

function readText(file: string, shown: string, given: boolean): string {
  try {
    return readFileSync(file, 'utf8')
  } catch (error) {
    const code = (error as NodeJS.ErrnoException).code
    const hint = given ? '' : `in ${dirname(file)}; name one with --config, or write one with \`grasp init\``
    const what =
      code === 'ENOENT'
        ? `there is no such configuration file ${hint}`.trim()
        : code === 'EISDIR'
          ? 'is a folder, expected a YAML file'
          : `cannot be read: ${describeError(error)}`
    throw new GraspError('CONFIG_INVALID', `${shown}: ${what}`, { cause: error })
  }
}

function parseYaml(text: string, file: string): { document: Document; lines: LineCounter } {
  const lines = new LineCounter()
  const document = parseDocument(text, { lineCounter: lines, prettyErrors: false, version: '1.2' })
  const [fault] = [...document.errors, ...document.warnings]
  if (fault) {
    const { line, col } = lines.linePos(fault.pos[0])
    throw new GraspError('CONFIG_INVALID', `${file}:${line}:${col}: not valid YAML: ${fault.message}`)
  }
  if (document.contents !== null && !isMap(document.contents)) {
    const found = isScalar(document.contents) ? show(document.contents.value) : 'a list'
    throw new GraspError(
      'CONFIG_INVALID',
      `${file}: holds ${found}; expected keys and values, such as \`run: my-run\``,
    )
  }
  return { document, lines }
}

/** A key without a value (`limit:`) is as if it were not there. */
function withoutNulls(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(withoutNulls)
  if (value === null || typeof value !== 'object') return value
  return Object.fromEntries(
    Object.entries(value)
      .filter(([, child]) => child !== null)
      .map(([key, child]) => [key, withoutNulls(child)]),
  )
}

/** Where (offset in the file) the key at a path stands, or the innermost section above it that the file has. */
function offsetOf(document: Document, path: KeyPath): number | undefined {
  let node: unknown = document.contents
  let offset: number | undefined
  for (const key of path) {
    if (!isMap(node)) break
    const pair = node.items.find(({ key: found }) => isScalar(found) && String(found.value) === String(key))
    if (!pair || !isScalar(pair.key) || !pair.key.range) break
    offset = pair.key.range[0]
    node = pair.value
  }
  return offset
}

const startsWith = (path: KeyPath, prefix: KeyPath) => prefix.every((key, i) => path[i] === key)

function resolvePaths(config: Config, fileFolder: string, cwd: string, overrides: readonly Override[]): void {
  for (const [path] of walk()) {
    // The shape depends on the kinds chosen: a path of a judge that is not in use has no value.
    const format = shapeAt(path, config)?.format
    if (format !== 'path' && format !== 'output-path') continue
    const section = path
      .slice(0, -1)
      .reduce<Section | undefined>((value, key) => value?.[key] as Section, config as never)
    const key = path.at(-1) as string
    const value = section?.[key]
    if (section === undefined || typeof value !== 'string') continue
    const typed = overrides.some(override => startsWith(path, override.path))
    section[key] = resolve(format === 'path' && !typed ? fileFolder : cwd, value)
  }
}

/** @throws GraspError CONFIG_INVALID that lists everything that is wrong. */
export function loadConfig(options: LoadOptions = {}): Config {
  const cwd = resolve(options.cwd ?? process.cwd())
  const shown = options.file ?? 'grasp.yaml'
  const file = resolve(cwd, shown)
  const { document, lines } = parseYaml(readText(file, shown, options.file !== undefined), shown)
  const root = (withoutNulls(document.toJS()) ?? {}) as Section
  const overrides: Override[] = []
  for (const argument of options.set ?? []) {
    const override = parseOverride(argument, root)
    applyOverride(root, override)
    overrides.push(override)
  }
  const parsed = configSchema.safeParse(root)
  if (!parsed.success) throw invalid(shown, problemsOf(parsed.error, root), document, lines, overrides)
  const folder = join(cwd, '.grasp', parsed.data.run)
  const config = structuredClone(parsed.data) as Config & {
    log: { path: string }
    output: { path: string }
    prompt: string
  }
  config.log.path ??= join(cwd, '.grasp', 'logs')
  config.output.path ??= folder
  config.prompt ??= ANSWER_PROMPT
  resolvePaths(config, dirname(file), cwd, overrides)
  return config
}

function invalid(
  file: string,
  problems: readonly Problem[],
  document: Document,
  lines: LineCounter,
  overrides: readonly Override[],
): GraspError {
  const placed = problems.map(({ path, text }) => {
    const override = overrides.findLast(({ path: set }) => startsWith(path, set) || startsWith(set, path))
    if (override)
      return { offset: Number.MAX_SAFE_INTEGER, text: `--set ${shownArgument(override.argument)}: ${text}` }
    const offset = offsetOf(document, path)
    const line = offset === undefined ? '' : `:${lines.linePos(offset).line}`
    return { offset: offset ?? -1, text: `${file}${line}: ${text}` }
  })
  const texts = placed.sort((a, b) => a.offset - b.offset).map(({ text }) => text)
  if (texts.length === 1) return new GraspError('CONFIG_INVALID', texts[0] as string)
  return new GraspError('CONFIG_INVALID', [`${texts.length} things are wrong`, ...texts].join('\n  '))
}
