/**
 * Apache Kafka as jars from Maven Central, in GRASP_TEST_CACHE (default: a folder in the system's temporary
 * directory). Run by itself it fetches them and prints where they are.
 */
import { execFile } from 'node:child_process'
import { existsSync } from 'node:fs'
import { mkdir, mkdtemp, rename, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'

const run = promisify(execFile)

export const KAFKA_VERSION = '4.4.0'
/** Kafka logs through slf4j 1.7. */
const LOGGING = '2.25.5'

export const CACHE = process.env.GRASP_TEST_CACHE ?? join(tmpdir(), 'grasp-test-cache')

const POM = `<project xmlns="http://maven.apache.org/POM/4.0.0">
  <modelVersion>4.0.0</modelVersion>
  <groupId>test</groupId><artifactId>kafka</artifactId><version>1</version><packaging>pom</packaging>
  <dependencies>
    <dependency>
      <groupId>org.apache.kafka</groupId><artifactId>kafka_2.13</artifactId><version>${KAFKA_VERSION}</version>
    </dependency>
    <dependency>
      <groupId>org.apache.logging.log4j</groupId><artifactId>log4j-slf4j-impl</artifactId><version>${LOGGING}</version>
    </dependency>
  </dependencies>
</project>
`

/** The folder of jars; fetched when it is not there. Errors: what Maven said. */
export async function kafkaJars(): Promise<string> {
  const folder = join(CACHE, `kafka-${KAFKA_VERSION}`)
  if (existsSync(folder)) return folder
  await mkdir(CACHE, { recursive: true })
  const work = await mkdtemp(join(CACHE, 'fetching-'))
  try {
    await writeFile(join(work, 'pom.xml'), POM)
    const goal = ['dependency:copy-dependencies', '-DincludeScope=runtime', `-DoutputDirectory=${work}/libs`]
    await run('mvn', ['-B', '-ntp', '-q', '-f', join(work, 'pom.xml'), ...goal], { timeout: 300_000 })
    // Two processes may fetch at once: the first to finish wins.
    await rename(join(work, 'libs'), folder).catch(error => {
      if (!existsSync(folder)) throw error
    })
  } finally {
    await rm(work, { recursive: true, force: true })
  }
  return folder
}

/** Why no broker can be run from jars here; undefined when one can. */
export async function lacksJava(): Promise<string | undefined> {
  const version = await run('java', ['-version']).then(
    ({ stderr }) => Number(/version "(\d+)/.exec(stderr)?.[1]),
    () => undefined,
  )
  if (version === undefined) return 'there is no java'
  if (!(version >= 17)) return `java is version ${version}, Kafka needs 17`
  if (existsSync(join(CACHE, `kafka-${KAFKA_VERSION}`))) return undefined
  return run('mvn', ['-version']).then(
    () => undefined,
    () => 'there is no mvn to fetch Kafka with',
  )
}

if (process.argv[1] === fileURLToPath(import.meta.url)) process.stdout.write(`${await kafkaJars()}\n`)
