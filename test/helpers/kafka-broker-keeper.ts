/**
 * Keeps one broker for all test processes that are connected to it (arguments: the socket to listen on), and
 * ends with the last of them. Each gets one line of JSON: `{"brokers": […]}` or `{"error": "…"}`.
 */
import { once } from 'node:events'
import { rmSync } from 'node:fs'
import { createServer, type Socket } from 'node:net'
import { KafkaProcess } from './kafka-process.ts'

/** How long it outlives the last test file, so that the next one finds it. */
const LINGER_MS = 5_000

const path = process.argv[2]!
const clients = new Set<Socket>()
let timer: NodeJS.Timeout | undefined

const server = createServer(socket => {
  clearTimeout(timer)
  clients.add(socket)
  socket.on('error', () => socket.destroy())
  socket.on('close', () => {
    clients.delete(socket)
    if (clients.size === 0) timer = setTimeout(() => void end(), LINGER_MS)
  })
  answer.then(line => socket.write(`${JSON.stringify(line)}\n`))
})
// Another keeper was quicker: leave it to it.
server.on('error', () => process.exit())
server.listen(path)
await once(server, 'listening')

const broker = KafkaProcess.create().then(async kafka => {
  await kafka.start()
  return kafka
})
const answer = broker.then(
  kafka => ({ brokers: kafka.brokers }),
  error => ({ error: String(error) }),
)

async function end(): Promise<void> {
  // Closing may remove the socket's file by itself.
  server.close()
  rmSync(path, { force: true })
  await broker.then(
    kafka => kafka.stop(),
    () => {},
  )
  process.exit()
}
process.on('SIGTERM', () => void end())
