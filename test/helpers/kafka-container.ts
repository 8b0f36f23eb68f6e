/** One Apache Kafka broker in a container, through whichever engine testcontainers finds. */
import { once } from 'node:events'
import { type AddressInfo, createServer } from 'node:net'
import { GenericContainer, Wait } from 'testcontainers'
import type { KafkaBroker } from './kafka-broker.ts'
import { KAFKA_VERSION } from './kafka-jars.ts'

const IMAGE = `apache/kafka:${KAFKA_VERSION}`

export async function startKafkaContainer(): Promise<KafkaBroker> {
  // The broker tells its clients where it is, so its port must be the same inside and outside.
  const port = await freePort()
  const container = await new GenericContainer(IMAGE)
    .withExposedPorts({ container: port, host: port })
    .withEnvironment({
      KAFKA_NODE_ID: '1',
      KAFKA_PROCESS_ROLES: 'broker,controller',
      KAFKA_LISTENERS: `CLIENTS://0.0.0.0:${port},CONTROLLER://127.0.0.1:29093`,
      KAFKA_ADVERTISED_LISTENERS: `CLIENTS://127.0.0.1:${port}`,
      KAFKA_LISTENER_SECURITY_PROTOCOL_MAP: 'CLIENTS:PLAINTEXT,CONTROLLER:PLAINTEXT',
      KAFKA_INTER_BROKER_LISTENER_NAME: 'CLIENTS',
      KAFKA_CONTROLLER_LISTENER_NAMES: 'CONTROLLER',
      KAFKA_CONTROLLER_QUORUM_VOTERS: '1@127.0.0.1:29093',
      KAFKA_OFFSETS_TOPIC_REPLICATION_FACTOR: '1',
      KAFKA_TRANSACTION_STATE_LOG_REPLICATION_FACTOR: '1',
      KAFKA_TRANSACTION_STATE_LOG_MIN_ISR: '1',
      KAFKA_OFFSETS_TOPIC_NUM_PARTITIONS: '4',
      KAFKA_TRANSACTION_STATE_LOG_NUM_PARTITIONS: '4',
      KAFKA_GROUP_INITIAL_REBALANCE_DELAY_MS: '0',
      KAFKA_AUTO_CREATE_TOPICS_ENABLE: 'false',
    })
    .withWaitStrategy(Wait.forLogMessage(/Kafka Server started/))
    .start()
  return {
    brokers: [`127.0.0.1:${port}`],
    release: async () => {
      await container.stop()
    },
  }
}

async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  await once(server.close(), 'close')
  return port
}
