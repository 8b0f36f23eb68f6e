/** The commands and their options. What a command does is loaded when it is called. */
import { Command, Option } from 'commander'
import { addOperating } from './operating.ts'
import { type AddCommand, collect, ownOptionsFirst, withConfig, withOutput } from './options.ts'
import type { CommonOptions, Session } from './session.ts'
import type { Streams } from './streams.ts'
import { packageVersion } from './version.ts'

const AFTER_HELP = `
Exit codes: 0 done, 1 failed, 2 wrong usage or configuration, 130 interrupted (\`grasp run\` then goes on).
Standard output holds the result alone; progress, logs and errors go to standard error.`

const EXAMPLES = `
Examples:
  grasp run --config examples/lab/grasp.yaml          the whole method on the synthetic lab
  grasp run --set training.seed=2 --set run=second    another run of ./grasp.yaml
  grasp answer "What tea should I try?" --profile posts.txt
  grasp init                                          a commented configuration to start from`

/** `ended` gets the exit code of the command that ran. */
export function createProgram(ended: (code: number) => void, streams: Streams = process): Command {
  const program = new Command('grasp')
  program
    .description('Keeps a language model personalised while its users keep talking to it (GRASP).')
    .version(packageVersion(), '-V, --version', 'print the version')
    .addHelpText('after', EXAMPLES)
    .addHelpText('after', AFTER_HELP)
    .showHelpAfterError('(grasp --help tells more)')
    .showSuggestionAfterError()
    .exitOverride()
    .configureOutput({
      writeOut: text => streams.stdout.write(text),
      writeErr: text => streams.stderr.write(text),
      outputError: (text, write) => write(text.replace(/^error:/, 'error USAGE:')),
    })

  const add: AddCommand = (parent, usage, what, load, examples = '') => {
    const command = parent.command(usage).description(what)
    command.addHelpText('after', examples + AFTER_HELP)
    return command.action(async (...parameters: unknown[]) => {
      const args = parameters.slice(0, -2)
      const options = parameters.at(-2) as CommonOptions
      const { runCommand } = await import('./session.ts')
      const work = async (session: Session) => (await load())(session, options as never, ...(args as never[]))
      ended(await runCommand(options, work, streams))
    })
  }

  withOutput(
    withConfig(
      add(
        program,
        'run [stage]',
        'run the whole method, or one stage of it as a process of its own; go on with what was stopped',
        async () => (await import('./commands/run.ts')).run,
      ),
    ),
  ).option('--no-progress', 'show no progress')

  withOutput(
    withConfig(
      add(
        program,
        'ingest',
        'only read the data files into the log',
        async () => (await import('./commands/ingest.ts')).ingestCommand,
      ),
    ),
  ).option('--no-progress', 'show no progress')

  withOutput(
    withConfig(
      add(
        program,
        'eval',
        "judge a policy's answers to held-out questions",
        async () => (await import('./commands/eval.ts')).evalCommand,
      ),
    ),
  )
    .option('--policy <which>', 'best, latest, base (untrained), teacher, or a version', 'best')
    .addOption(
      new Option('--split <split>', 'which questions').choices(['validation', 'test']).default('test'),
    )
    .option('--no-progress', 'show no progress')

  withOutput(
    withConfig(
      add(
        program,
        'answer <question>',
        'answer a question for a user with earlier posts',
        async () => (await import('./commands/answer.ts')).answerCommand,
      ),
    ),
  )
    .option('-p, --profile <file>', "the user's posts: JSON, or one a line; - is standard input")
    .option('--narrative <text>', 'what the user had in mind', '')
    .option('--category <text>', "the question's category", '')
    .option('--policy <which>', 'best, latest, base (untrained), or a version', 'best')

  addOperating(program, add, AFTER_HELP)

  withOutput(
    add(
      program,
      'describe',
      'show the stages and the topics between them',
      async () => (await import('./commands/describe.ts')).describe,
    ),
  ).addOption(new Option('--format <format>', 'how').choices(['text', 'json', 'mermaid']).default('text'))

  withOutput(
    withConfig(
      add(
        program,
        'export <folder>',
        'write a policy as a Hugging Face directory',
        async () => (await import('./commands/export.ts')).exportCommand,
      ),
    ),
  )
    .option('--policy <which>', 'best, latest, base (untrained), or a version', 'best')
    .addOption(
      new Option('--dtype <dtype>', 'number format of the weights').choices(['f32', 'bf16']).default('f32'),
    )
    .option('--adapter', "only the adapter of training.lora, in PEFT's format")

  withOutput(
    add(
      program,
      'pull <repository>',
      'fetch a model from the Hugging Face hub (HF_ENDPOINT, HF_TOKEN)',
      async () => (await import('./commands/pull.ts')).pullCommand,
    ),
  )
    .option('--revision <revision>', 'branch, tag or commit', 'main')
    .option('--to <folder>', 'where to put the files (default: models/REPOSITORY)')
    .option('--include <pattern>', 'fetch these files alone, such as *.gguf; may be repeated', collect)
    .option('--no-progress', 'show no progress')

  withOutput(
    withConfig(
      add(
        program,
        'doctor',
        'check this machine, and the configuration where there is one',
        async () => (await import('./commands/doctor.ts')).doctor,
      ),
    ),
  )

  withOutput(
    add(
      program,
      'init [file]',
      'write a commented configuration (default: grasp.yaml)',
      async () => (await import('./commands/init.ts')).init,
    ),
  ).option('--force', 'overwrite a file that exists')

  ownOptionsFirst(program)
  return program
}
