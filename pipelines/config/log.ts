/**
 * The section `log`: the embedded log, or Kafka. It is one section for both, so that `--set log.kind=…` is all
 * that it takes to move a run; the keys of the other kind rest meanwhile.
 */
import { z } from 'zod'
import { brokerFault, brokerList, isLoopback } from './brokers.ts'
import { count, environmentVariable, file, name, outputFolder, section } from './fields.ts'
import { logTimeouts } from './log-timeouts.ts'

type Issue = (path: readonly string[], message: string) => void

const certificates = {
  ca: file()
    .optional()
    .describe("PEM file of the authorities to trust; by default the system's, as Node.js has them."),
  cert: file().optional().describe('PEM file of the own certificate, where the server asks for one (mTLS).'),
  key: file().optional().describe("PEM file of the own certificate's key, not encrypted."),
  servername: z
    .string()
    .min(1)
    .optional()
    .describe("The name in the server's certificate, where it is not the address."),
}

const tls = section('TLS to the brokers; only for kind `kafka`.', {
  enabled: z.boolean().optional().describe('Encrypt; by default when another key of this section is set.'),
  ...certificates,
})

type Tls = z.output<typeof tls>

const broker = () => z.string().min(1).meta({ format: 'broker' })

/** Whether a connection is encrypted. */
export function tlsEnabled(settings: Tls): boolean {
  return settings.enabled ?? Object.values(settings).some(value => value !== undefined)
}

const password = {
  passwordEnv: environmentVariable().optional().describe('Environment variable that holds the password.'),
  passwordFile: file().optional().describe('File that holds the password.'),
}

const sasl = z
  .strictObject({
    mechanism: z
      .enum(['plain', 'scram-sha-256', 'scram-sha-512'])
      .describe('`plain` sends the password itself; the others prove that it is known.'),
    username: z.string().min(1).describe('The user at the brokers.'),
    ...password,
    allowInsecure: z
      .boolean()
      .default(false)
      .describe('Allow `plain` without TLS to another machine: the password then travels in clear.'),
  })
  .describe('How to log in; only for kind `kafka`. By default not at all.')

const registry = z
  .strictObject({
    url: z
      .url({ protocol: /^https?$/ })
      .describe("Base URL of the registry's Confluent API, such as http://127.0.0.1:8081."),
    username: z.string().min(1).optional().describe('The user at the registry (HTTP basic authentication).'),
    ...password,
    allowInsecure: z
      .boolean()
      .default(false)
      .describe('Allow a password over http to another machine: it then travels in clear.'),
    timeoutMs: count(1).default(10_000).describe('Longest wait for an answer, milliseconds.'),
    waitMs: count(0)
      .default(30_000)
      .describe('How long a registry that does not answer is asked again, milliseconds.'),
    tls: section('TLS to the registry, for an https URL.', certificates),
  })
  .describe('A schema registry; only for kind `kafka`. By default each record names its schema itself.')

export const log = section('The log that holds every record of the run.', {
  kind: z
    .enum(['embedded', 'kafka'])
    .default('embedded')
    .describe('`embedded`: LMDB, in a folder of this machine; `kafka`: a cluster.'),
  path: outputFolder()
    .optional()
    .describe('Only for `embedded`: folder of logs, in which each run has its own; by default .grasp/logs.'),
  partitions: count(1).max(1024).default(1).describe('Partitions of each topic that is created.'),
  brokers: z
    .union([broker(), z.array(broker()).min(1)])
    .transform(brokerList)
    .optional()
    .describe('Only for `kafka`: addresses to start from, HOST:PORT, a list or separated by commas.'),
  prefix: name().default('grasp').describe('Only for `kafka`: topics are called PREFIX.RUN.TOPIC.'),
  clientId: name().default('grasp').describe("Only for `kafka`: this client's name in logs and quotas."),
  replication: count(1)
    .max(32)
    .optional()
    .describe('Only for `kafka`: replicas of each topic that is created; by default as the brokers have it.'),
  retentionHours: count(1)
    .optional()
    .describe('Only for `kafka`: how long records are kept; by default for ever, as a replay needs them.'),
  maxMessageBytes: count(64 * 1024)
    .max(1024 * 1024 * 1024)
    .default(8 * 1024 * 1024)
    .describe('Only for `kafka`: largest record that the topics take.'),
  timeouts: logTimeouts,
  compression: z
    .enum(['none', 'gzip', 'snappy', 'lz4'])
    .default('none')
    .describe('Only for `kafka`: `snappy` needs the package kafkajs-snappy, `lz4` @2l/kafkajs-lz4.'),
  tls,
  sasl: sasl.optional(),
  registry: registry.optional(),
}).superRefine((settings, context) => {
  const issue: Issue = (path, message) => context.addIssue({ code: 'custom', path: [...path], message })
  checkTls(settings.tls, ['tls'], issue)
  for (const broker of settings.brokers ?? []) {
    const fault = brokerFault(broker)
    if (fault) issue(['brokers'], fault)
  }
  if (settings.kind === 'kafka' && settings.brokers === undefined) {
    issue(['brokers'], 'is missing, but log.kind is kafka')
  }
  checkSasl(settings, issue)
  if (settings.registry) checkRegistry(settings.registry, issue)
})

function checkTls(
  settings: { cert?: string | undefined; key?: string | undefined },
  path: readonly string[],
  issue: Issue,
): void {
  for (const [one, other] of [
    ['cert', 'key'],
    ['key', 'cert'],
  ] as const) {
    if (settings[one] === undefined && settings[other] !== undefined) {
      issue([...path, one], `is missing, but log.${[...path, other].join('.')} is set`)
    }
  }
}

function checkPassword(
  settings: { passwordEnv?: string | undefined; passwordFile?: string | undefined },
  path: readonly string[],
  issue: Issue,
): void {
  const given = [settings.passwordEnv, settings.passwordFile].filter(value => value !== undefined).length
  if (given === 1) return
  const key = `log.${[...path, 'passwordFile'].join('.')}`
  issue(
    [...path, 'passwordEnv'],
    given === 0 ? `or ${key} is missing` : `and ${key} are both set; leave one out`,
  )
}

interface Brokers {
  readonly brokers?: readonly string[] | undefined
  readonly tls: Tls
  readonly sasl?: z.output<typeof sasl> | undefined
}

function checkSasl({ brokers, tls, sasl }: Brokers, issue: Issue): void {
  if (!sasl) return
  checkPassword(sasl, ['sasl'], issue)
  if (sasl.mechanism !== 'plain' || sasl.allowInsecure || tlsEnabled(tls)) return
  const away = brokers?.find(broker => !isLoopback(broker.replace(/:\d+$/, '')))
  if (away !== undefined && brokerFault(away) === undefined) {
    issue(
      ['sasl', 'mechanism'],
      `is plain, which would send the password to ${away} in clear; set log.tls.enabled, or log.sasl.allowInsecure`,
    )
  }
}

function checkRegistry(settings: z.output<typeof registry>, issue: Issue): void {
  checkTls(settings.tls, ['registry', 'tls'], issue)
  const url = new URL(settings.url)
  if (url.username !== '' || url.password !== '') {
    issue(
      ['registry', 'url'],
      'holds a user or password; put them into log.registry.username and .passwordEnv',
    )
    return
  }
  if (url.search !== '' || url.hash !== '') issue(['registry', 'url'], 'has a query or a fragment')
  if (url.protocol === 'http:' && Object.values(settings.tls).some(value => value !== undefined)) {
    issue(['registry', 'url'], 'is http, but log.registry.tls is set')
  }
  const hasPassword = settings.passwordEnv !== undefined || settings.passwordFile !== undefined
  if (settings.username === undefined) {
    if (hasPassword) issue(['registry', 'username'], 'is missing, but a password is given')
    return
  }
  checkPassword(settings, ['registry'], issue)
  if (url.protocol === 'http:' && !settings.allowInsecure && !isLoopback(url.hostname)) {
    issue(
      ['registry', 'url'],
      'is http to another machine, so the password would travel in clear; use https, or set log.registry.allowInsecure',
    )
  }
}
