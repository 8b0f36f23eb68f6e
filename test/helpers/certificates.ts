/** Certificates made with openssl, valid for 127.0.0.1 and localhost, for a day. */
import { execFile } from 'node:child_process'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'

const run = promisify(execFile)

export interface Authority {
  readonly cert: string
  /** Files of a certificate that this authority signed, and of its key (PKCS 8). */
  issue(name: string): Promise<{ readonly cert: string; readonly key: string }>
}

/** An authority whose files, and those of what it signs, are in `folder`. */
export async function makeAuthority(folder: string, name: string): Promise<Authority> {
  const path = (file: string) => join(folder, `${name}-${file}`)
  const [key, cert] = [path('ca.key'), path('ca.pem')]
  const openssl = (...args: string[]) => run('openssl', args)
  const fresh = ['-newkey', 'rsa:2048', '-nodes']
  await openssl('req', '-x509', ...fresh, '-keyout', key, '-out', cert, '-days', '1', '-subj', `/CN=${name}`)
  return {
    cert,
    async issue(subject) {
      const [ownKey, request, own] = [path(`${subject}.key`), path(`${subject}.csr`), path(`${subject}.pem`)]
      const extensions = path(`${subject}.ext`)
      await writeFile(extensions, 'subjectAltName=IP:127.0.0.1,DNS:localhost\n')
      await openssl('req', ...fresh, '-keyout', ownKey, '-out', request, '-subj', `/CN=${subject}`)
      const signer = ['-CA', cert, '-CAkey', key, '-CAcreateserial', '-days', '1', '-extfile', extensions]
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
