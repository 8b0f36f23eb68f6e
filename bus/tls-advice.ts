/** What to do about a TLS connection that failed, by the words of Node and OpenSSL. */
import { describeError } from '../errors/grasp-error.ts'

/** In the order in which they are looked for; `{}` is the section of the configuration. */
const CAUSES: readonly (readonly [RegExp, string])[] = [
  [/has expired|not yet valid/i, 'renew that certificate; where it is the authority, check {}.ca'],
  [/altnames/i, 'check the address, or name the server in {}.servername'],
  [
    /alert .*(certificate|unknown ca)/i,
    'the server wants a certificate that it trusts; check {}.cert and {}.key',
  ],
  [/before secure TLS|wrong version number|packet length/i, 'the server speaks no TLS there; check {}'],
  [/self-signed|self signed|unable to (get|verify)/i, 'check {}.ca, which names the authority to trust'],
  [/certificate|SSL|TLS/i, 'check {}'],
]

/** Undefined where the error is of another kind. `section` is that of the configuration, such as `log.tls`. */
export function tlsAdvice(error: unknown, section: string): string | undefined {
  const text = shortText(describeError(error))
  const [, remedy] = CAUSES.find(([words]) => words.test(text)) ?? []
  if (remedy === undefined) return undefined
  return `no trusted TLS connection (${text}); ${remedy.replaceAll('{}', section)}`
}

/** `…:error:0A000412:SSL routines:read_bytes:sslv3 alert bad certificate:../deps/…` → what is told last but files. */
function shortText(text: string): string {
  const openssl = /:error:[0-9A-F]+:([^:]*):[^:]*:([^:]*)/i.exec(text)
  return openssl ? `${openssl[1]}: ${openssl[2]}` : text.replace(/^Connection error: /, '').trim()
}
