/** Certificates made with openssl, valid for 127.0.0.1 and localhost, for a day. */
import { execFile } from 'node:child_process'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'

const run = promisify(execFile)

export interface Authority {
  readonly cert: string
  /** The same authority in a certificate that has expired. */
  expired(): Promise<string>
  /** Files of a certificate that this authority signed, and of its key (PKCS 8); below 0 days it has expired. */
  issue(name: string, days?: number): Promise<{ readonly cert: string; readonly key: string }>
}

/** An authority whose files, and those of what it signs, are in `folder`. */
export async function makeAuthority(folder: string, name: string): Promise<Authority> {
  const path = (file: string) => join(folder, `${name}-${file}`)
  const [key, cert] = [path('ca.key'), path('ca.pem')]
  const openssl = (...args: string[]) => run('openssl', args)
  const fresh = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes']
  await openssl('req', '-x509', ...fresh, '-keyout', key, '-out', cert, '-days', '1', '-subj', `/CN=${name}`)
  return {
    cert,
    async expired() {
      const [request, own, extensions] = [path('ca.csr'), path('ca-expired.pem'), path('ca.ext')]
      await writeFile(extensions, 'basicConstraints=CA:TRUE\n')
      await openssl('req', '-new', '-key', key, '-out', request, '-subj', `/CN=${name}`)
      const signer = ['-signkey', key, '-days', '-1', '-extfile', extensions]
      await openssl('x509', '-req', '-in', request, ...signer, '-out', own)
      return own
    },
    async issue(subject, days = 1) {
      const [ownKey, request, own] = [path(`${subject}.key`), path(`${subject}.csr`), path(`${subject}.pem`)]
      const extensions = path(`${subject}.ext`)
      await writeFile(extensions, 'subjectAltName=IP:127.0.0.1,DNS:localhost\n')
      await openssl('req', ...fresh, '-keyout', ownKey, '-out', request, '-subj', `/CN=${subject}`)
      const signer = [
        '-CA',
        cert,
        '-CAkey',
        key,
        '-CAcreateserial',
        '-days',
        String(days),
        '-extfile',
        extensions,
      ]
      await openssl('x509', '-req', '-in', request, ...signer, '-out', own)
      return { cert: own, key: ownKey }
    },
  }
}

/** Whether openssl is installed. */
export function hasOpenssl(): Promise<boolean> {
  return run('openssl', ['version']).then(
    () => true,
    () => false,
  )
}
