/** Passwords and certificates that a configuration names: they are in the environment or in files, never in it. */
import { X509Certificate } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import { createSecureContext } from 'node:tls'
import { describeError, GraspError } from '../errors/grasp-error.ts'

type Environment = Readonly<Record<string, string | undefined>>

/**
 * The password that `passwordEnv` or `passwordFile` names (a line's end after it does not count). `section` is the
 * configuration's, for messages. Errors: CONFIG_INVALID, never with the password.
 */
export async function readPassword(
  section: string,
  source: { readonly passwordEnv?: string | undefined; readonly passwordFile?: string | undefined },
  env: Environment,
): Promise<string> {
  const { passwordEnv, passwordFile } = source
  if (passwordEnv !== undefined) {
    const password = env[passwordEnv]
    if (password) return password
    // In capitals it is surely a name, and not the password itself, put there by mistake.
    const name = /^[A-Z][A-Z0-9_]*$/.test(passwordEnv) ? ` ${passwordEnv}` : ' of that name'
    const state = password === undefined ? 'is not set' : 'is empty'
    throw new GraspError('CONFIG_INVALID', `${section}.passwordEnv: the environment variable${name} ${state}`)
  }
  if (passwordFile === undefined) {
    throw new GraspError('CONFIG_INVALID', `${section}: passwordEnv or passwordFile is missing`)
  }
  const password = (await readText(`${section}.passwordFile`, passwordFile)).replace(/\r?\n$/, '')
  if (password !== '') return password
  throw new GraspError('CONFIG_INVALID', `${section}.passwordFile: ${passwordFile}: the file is empty`)
}

interface CertificateFiles {
  readonly ca?: string | undefined
  readonly cert?: string | undefined
  readonly key?: string | undefined
  readonly servername?: string | undefined
}

export interface CertificateTexts {
  ca?: string
  cert?: string
  key?: string
  servername?: string
}

/** The files' contents, checked to be usable. Errors: CONFIG_INVALID naming key and file, never with the key. */
export async function readCertificates(section: string, files: CertificateFiles): Promise<CertificateTexts> {
  const texts: CertificateTexts = {}
  for (const name of ['ca', 'cert', 'key'] as const) {
    const file = files[name]
    if (file === undefined) continue
    const text = await readText(`${section}.${name}`, file)
    const wrong = (what: string) => new GraspError('CONFIG_INVALID', `${section}.${name}: ${file}: ${what}`)
    if (name === 'key' && !text.includes('PRIVATE KEY-----')) throw wrong('holds no PEM private key')
    if (/ENCRYPTED/.test(text))
      throw wrong('is encrypted, which is not supported; keep it in a file that only this user may read')
    if (name !== 'key') checkCertificates(text, name === 'cert', wrong)
    texts[name] = text
  }
  try {
    createSecureContext(texts)
  } catch (cause) {
    // OpenSSL's texts name what is wrong (`key values mismatch`) and hold nothing of the key.
    throw new GraspError(
      'CONFIG_INVALID',
      `${section}: ca, cert and key cannot be used: ${describeError(cause)}`,
    )
  }
  if (files.servername !== undefined) texts.servername = files.servername
  return texts
}

/** OpenSSL passes over an authority that it cannot read, and only the other side sees that a certificate is old. */
function checkCertificates(text: string, own: boolean, wrong: (what: string) => GraspError): void {
  const blocks = text.match(/-----BEGIN CERTIFICATE-----[^-]*-----END CERTIFICATE-----/g)
  if (!blocks) throw wrong('holds no PEM certificate')
  const certificates = blocks.map((block, i) => {
    try {
      return new X509Certificate(block)
    } catch (cause) {
      throw wrong(`certificate ${i + 1} is damaged: ${describeError(cause)}`)
    }
  })
  // Of a chain the first is one's own; of several authorities some may have had their time.
  const needed = own ? certificates.slice(0, 1) : certificates
  if (needed.every(({ validTo }) => Date.parse(validTo) < Date.now()))
    throw wrong(`expired on ${needed.at(-1)!.validTo}; renew it`)
}

async function readText(key: string, file: string): Promise<string> {
  if (file.includes('-----BEGIN')) {
    throw new GraspError('CONFIG_INVALID', `${key} holds the PEM text itself; expected the path of its file`)
  }
  try {
    return await readFile(file, 'utf8')
  } catch (cause) {
    const code = (cause as NodeJS.ErrnoException).code
    const what = code === 'ENOENT' ? 'there is no such file' : `cannot be read: ${describeError(cause)}`
    throw new GraspError('CONFIG_INVALID', `${key}: ${file}: ${what}`, { cause })
  }
}
