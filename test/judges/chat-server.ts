/** A real HTTP server on this machine that answers chat completions as a test tells it to. */
import type { IncomingMessage, ServerResponse } from 'node:http'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'

export interface Received {
  readonly method: string
  readonly path: string
  readonly authorization: string | undefined
  readonly body: Record<string, unknown> & { readonly messages: readonly { role: string; content: string }[] }
}

/** What to do with the n-th request, from 0. */
export type Behaviour = (response: ServerResponse, n: number, request: Received) => void | Promise<void>

export interface ChatServer extends AsyncDisposable {
  readonly url: string
  readonly requests: readonly Received[]
  /** The most requests that were open at the same time. */
  readonly most: () => number
}

export async function chatServer(behaviour: Behaviour): Promise<ChatServer> {
  const requests: Received[] = []
  let open = 0
  let most = 0
  const server = createServer(async (message: IncomingMessage, response) => {
    const n = requests.length
    const { method = '', url: path = '', headers } = message
    const received = { method, path, authorization: headers.authorization, body: {} as Received['body'] }
    requests.push(received)
    most = Math.max(most, ++open)
    response.on('close', () => open--)
    const chunks: Buffer[] = []
    for await (const chunk of message) chunks.push(chunk)
    received.body = JSON.parse(Buffer.concat(chunks).toString())
    await behaviour(response, n, received)
  })
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1`,
    requests,
    most: () => most,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections()
      await new Promise(resolve => server.close(resolve))
    },
  }
}

/** Answers as a well-behaved server does. */
export function say(response: ServerResponse, content: string | null): void {
  response.setHeader('content-type', 'application/json')
  response.end(
    JSON.stringify({
      choices: [{ index: 0, message: { role: 'assistant', content }, finish_reason: 'stop' }],
    }),
  )
}

export function fail(
  response: ServerResponse,
  status: number,
  headers: Record<string, string> = {},
  body = 'no',
): void {
  response.writeHead(status, headers).end(body)
}
