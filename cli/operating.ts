/** The commands for operating a run: its topics, lag, positions and dead letters. */
import { type Command, InvalidArgumentError, Option } from 'commander'
import { type AddCommand, collect, wholeNumber, withConfig, withOutput } from './options.ts'

function seconds(text: string): number {
  const value = Number(text)
  if (text.trim() === '' || !(value >= 0.1)) throw new InvalidArgumentError('expected seconds, 0.1 at least.')
  return value
}

const withSelection = (command: Command) =>
  command
    .option(
      '--where <field=value>',
      'only records whose field has this value (or !=); may be repeated',
      collect,
    )
    .option('--key <key>', 'only records with this key')
    .option('--partition <n>', 'only this partition', wholeNumber)

const withLetters = (command: Command) =>
  command
    .option('--stage <stage>', 'only of this stage')
    .option('--code <code>', 'only with this error code')
    .option('--topic <topic>', 'only of records of this topic; - is items of files')
    .option('--since <time>', 'only from this time on (ISO 8601)')

const TAIL_EXAMPLES = `
Examples:
  grasp topics tail slices --where batch.number=3 --follow
  grasp topics tail validations --where accepted=false --where context.category=Society_and_Culture
  grasp topics tail deadletters --since 2026-01-31 --limit 5
`

const RESET_EXAMPLES = `
Examples:
  grasp reset --stage filtering --to beginning --dry-run
  grasp reset --stage retrieval --to 2026-01-31T12:00:00Z
  grasp reset --stage validation --to 1200 --partition 3
`

const REPLAY_EXAMPLES = `
Examples:
  grasp deadletters replay 17                        the letter deadletters/0/17
  grasp deadletters replay --stage validation        all of a stage; asks before
  grasp deadletters replay 3 --item right.json       an item of a data file, put right
`

const withConsent = (command: Command) =>
  command.option('--dry-run', 'only show what would be done').option('-y, --yes', 'do not ask')

export function addOperating(program: Command, add: AddCommand, afterHelp: string): void {
  const family = (name: string, what: string) =>
    program.command(name).description(what).addHelpText('after', afterHelp)

  const topics = family('topics', "look into the run's log")
  const topicCommands = () => import('./commands/topics.ts')
  withOutput(
    withConfig(
      add(
        topics,
        'list',
        'topics, their records and whether they are complete',
        async () => (await topicCommands()).listTopics,
      ),
    ),
  )
  withOutput(
    withConfig(
      add(
        topics,
        'create',
        'make the topics that are not there, with the settings of the configuration',
        async () => (await topicCommands()).createTopicsCommand,
      ),
    ),
  )
  withSelection(
    withOutput(
      withConfig(
        add(
          topics,
          'count [topic]',
          'count the records of a topic, or of each',
          async () => (await topicCommands()).countTopics,
        ),
      ),
    ),
  )
  withSelection(
    withOutput(
      withConfig(
        add(
          topics,
          'tail <topic>',
          'print records as JSON lines, oldest first',
          async () => (await import('./commands/topics-tail.ts')).tailTopic,
          TAIL_EXAMPLES,
        ),
      ),
      'print an error as JSON too; records always are',
    ),
  )
    .option('-n, --records <n>', 'how many of the newest records', wholeNumber, 10)
    .option('--offset <n>', 'start at this offset instead', wholeNumber)
    .option('--since <time>', 'start at this time instead (ISO 8601)')
    .option('--limit <n>', 'stop after so many records', wholeNumber)
    .option('-f, --follow', 'go on printing what comes, until interrupted')
    .option('--raw', 'print bytes in base64 instead of their size')

  withOutput(
    withConfig(
      add(
        program,
        'lag',
        'how far each stage is behind its topic',
        async () => (await import('./commands/lag.ts')).lag,
      ),
    ),
  )
    .option('--exact', 'count unread records where offsets have gaps, by reading them')
    .option('-w, --watch [seconds]', 'show it again every so many seconds (2), until interrupted', seconds)

  withConsent(
    withOutput(
      withConfig(
        add(
          program,
          'reset',
          'set a stage back in its topic (or forward), so that it processes records again',
          async () => (await import('./commands/reset.ts')).reset,
          RESET_EXAMPLES,
        ),
      ),
    ),
  )
    .addOption(
      new Option(
        '--stage <stage>',
        'retrieval, validation, filtering, rollout or scoring',
      ).makeOptionMandatory(),
    )
    .addOption(
      new Option('--to <where>', 'beginning, end, an offset, or a time (ISO 8601)').makeOptionMandatory(),
    )
    .option('--partition <n>', 'only this partition', wholeNumber)

  const letters = family('deadletters', 'records that could not be processed')
  const letterCommands = () => import('./commands/deadletters.ts')
  withLetters(
    withOutput(
      withConfig(
        add(letters, 'list', 'what failed, where and why', async () => (await letterCommands()).listLetters),
      ),
    ),
  )
  withOutput(
    withConfig(
      add(
        letters,
        'show <id>',
        'one of them, with its record',
        async () => (await letterCommands()).showLetter,
      ),
    ),
  ).option('--raw', 'print bytes in base64 instead of their size')
  withConsent(
    withLetters(
      withOutput(
        withConfig(
          add(
            letters,
            'replay [ids...]',
            'publish their records again, for the stages to process',
            async () => (await import('./commands/deadletters-replay.ts')).replayLetters,
            REPLAY_EXAMPLES,
          ),
        ),
      ),
    ),
  )
    .option('--all', 'all of them')
    .option('--again', 'also those that were replayed before')
    .option('--item <file>', 'for one item of a data file: the item put right, as JSON')
}
