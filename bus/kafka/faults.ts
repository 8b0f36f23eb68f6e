/** What kafkajs reports, as errors that say what to do. */
import { describeError, GraspError } from '../../errors/grasp-error.ts'
import type { Topic } from '../../schemas/types.ts'
import type { Place } from '../port.ts'
import { tlsAdvice } from '../tls-advice.ts'

/** A GraspError of anything thrown while `doing` something with the log on these brokers. */
export function kafkaFault(brokers: readonly string[], doing: string, cause: unknown): GraspError {
  if (cause instanceof GraspError) return cause
  const where = `the Kafka log on ${brokers.join(', ')}`
  return new GraspError('LOG_UNAVAILABLE', `cannot ${doing} ${where}: ${advice(cause)}`, { cause })
}

/** For a commit of one who is no member any more. */
export function departed(topic: Topic, group: string): GraspError {
  return new GraspError(
    'PARTITION_LOST',
    `this process has left group ${group}: what it did of ${topic} since its last commit is not committed`,
  )
}

/** Records that went before their group read them. `given`: where to go on is not the group's to say. */
export function goneRecords(
  group: string,
  { topic, partition, offset }: Place,
  beginning: number,
  given: boolean,
): GraspError {
  const remedy = given
    ? 'Its checkpoint needs them; start another run'
    : `To go on without them: grasp reset --stage ${group} --to beginning`
  return new GraspError(
    'LOG_MISMATCH',
    `group ${group} is to go on at offset ${offset} of ${topic}/${partition}, but Kafka has removed what was there ` +
      `before ${beginning} (log.retentionHours, or somebody's hand): those records are lost to it. ${remedy}`,
  )
}

/** For what others write that is neither in nor out, for longer than brokers let it be. `from`: its first offset. */
export function undecided(place: string, from?: number): GraspError {
  const where = from === undefined ? place : `${place}, from offset ${from} on,`
  return new GraspError(
    'LOG_UNAVAILABLE',
    `a transaction in ${where} stays open, so that nobody can tell what is written there; ` +
      "stop the process that is at it, or end it with Kafka's tools (kafka-transactions.sh find-hanging, then abort)",
  )
}

/** A group that was away for longer than the cluster remembers. */
export function forgottenPosition(group: string, topic: Topic, partition: number): GraspError {
  return new GraspError(
    'LOG_MISMATCH',
    `the cluster has forgotten where group ${group} was in ${topic}/${partition}: a group that nobody works in is ` +
      'forgotten after offsets.retention.minutes, a setting of the brokers (7 days by default). Beginning once more ' +
      `would do everything twice; say where to go on with grasp reset --stage ${group} --to …`,
  )
}

/** The error that kafkajs wrapped. */
export function rootOf(error: unknown): unknown {
  const cause = (error as { cause?: unknown } | null | undefined)?.cause
  return cause instanceof Error ? rootOf(cause) : error
}

/** Kafka's name of the error (`UNKNOWN_MEMBER_ID`), or kafkajs's class, or the system's code. */
export function typeOf(error: unknown): string {
  const root = rootOf(error) as { type?: unknown; code?: unknown; name?: unknown } | null | undefined
  const type = root?.type ?? root?.code ?? root?.name
  return typeof type === 'string' ? type : ''
}

function advice(cause: unknown): string {
  const text = describeError(rootOf(cause))
  const type = typeOf(cause)
  if (type === 'SASL_AUTHENTICATION_FAILED' || type === 'KafkaJSSASLAuthenticationError') {
    return `the broker refused the login (${text}); check log.sasl`
  }
  const tls = tlsAdvice(rootOf(cause), 'log.tls')
  if (tls !== undefined) return tls
  if (type.endsWith('AUTHORIZATION_FAILED')) return `not allowed (${text}); give this user the permission`
  if (type === 'INVALID_SESSION_TIMEOUT')
    return `the brokers do not allow that session (${text}); set log.timeouts.session`
  if (type === 'INVALID_REPLICATION_FACTOR') {
    return `there are not as many brokers as replicas are wanted (${text}); set log.replication, or start more brokers`
  }
  // What a broker does when somebody speaks without TLS to TLS, without logging in, or without a certificate.
  if (/closed connection|ECONNRESET|EPIPE/i.test(text)) {
    return `the broker hung up (${text}); check log.brokers, log.tls and log.sasl, and that Kafka runs`
  }
  if (/ECONNREFUSED|ENOTFOUND|ETIMEDOUT|EHOSTUNREACH|EAI_AGAIN|timeout/i.test(text)) {
    return `no broker answers there (${text}); check log.brokers, and that Kafka runs`
  }
  return text
}
