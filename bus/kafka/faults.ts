/** What kafkajs reports, as errors that say what to do. */
import { describeError, GraspError } from '../../errors/grasp-error.ts'
import { tlsAdvice } from '../tls-advice.ts'

/** A GraspError of anything thrown while `doing` something with the log on these brokers. */
export function kafkaFault(brokers: readonly string[], doing: string, cause: unknown): GraspError {
  if (cause instanceof GraspError) return cause
  const where = `the Kafka log on ${brokers.join(', ')}`
  return new GraspError('LOG_UNAVAILABLE', `cannot ${doing} ${where}: ${advice(cause)}`, { cause })
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
  // What a broker does when somebody speaks without TLS to TLS, without logging in, or without a certificate.
  if (/closed connection|ECONNRESET|EPIPE/i.test(text)) {
    return `the broker hung up (${text}); check log.brokers, log.tls and log.sasl, and that Kafka runs`
  }
  if (/ECONNREFUSED|ENOTFOUND|ETIMEDOUT|EHOSTUNREACH|EAI_AGAIN|timeout/i.test(text)) {
    return `no broker answers there (${text}); check log.brokers, and that Kafka runs`
  }
  return text
}
