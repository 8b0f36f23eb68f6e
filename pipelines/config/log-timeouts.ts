/** The section `log.timeouts`: how long the Kafka adapter waits for what. */
import { count, section } from './fields.ts'

const SECOND = 1_000
const MINUTE = 60 * SECOND

/** What brokers allow unless they are told otherwise (`group.min.session.timeout.ms`, `group.max…`). */
const SHORTEST_SESSION = 6 * SECOND
const LONGEST_SESSION = 30 * MINUTE

export const logTimeouts = section('How long to wait, in milliseconds; only for kind `kafka`.', {
  connect: count(100)
    .default(5 * SECOND)
    .describe('For a connection to a broker.'),
  request: count(SECOND)
    .default(30 * SECOND)
    .describe("For a broker's answer."),
  away: count(SECOND)
    .default(3 * MINUTE)
    .describe('For brokers that are away, before the process gives up.'),
  session: count(SHORTEST_SESSION)
    .max(LONGEST_SESSION)
    .default(45 * SECOND)
    .describe('For a sign of life of a process, before its partitions go to others.'),
  rebalance: count(SECOND)
    .max(LONGEST_SESSION)
    .default(MINUTE)
    .describe('For all processes of a stage to join, when its partitions are shared out anew.'),
  stuck: count(SECOND)
    .default(30 * MINUTE)
    .describe('For a stage that holds records to finish one, before it is taken to be stuck and ends.'),
  close: count(100)
    .default(10 * SECOND)
    .describe('For the brokers when the process ends.'),
})
