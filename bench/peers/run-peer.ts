/** Runs one side of a benchmark in a process of its own: the task goes in as JSON, numbers come out line by line. */
import { spawn } from 'node:child_process'

export function runPeer<Numbers>(
  [command, ...args]: readonly [string, ...string[]],
  task: object,
): Promise<Numbers[]> {
  const child = spawn(command, args, { stdio: ['pipe', 'pipe', 'inherit'] })
  // A side that died is told by its exit code.
  child.stdin.on('error', () => {})
  child.stdin.end(JSON.stringify(task))
  let text = ''
  child.stdout.on('data', data => {
    text += data
  })
  return new Promise((resolve, reject) => {
    child.on('error', reject)
    child.on('close', code => {
      if (code === 0)
        resolve(
          text
            .trim()
            .split('\n')
            .map(line => JSON.parse(line)),
        )
      else reject(new Error(`${command} ${args.join(' ')} ended with exit code ${code}`))
    })
  })
}

export async function readStandardInput(): Promise<string> {
  const chunks: Buffer[] = []
  for await (const chunk of process.stdin) chunks.push(chunk)
  return Buffer.concat(chunks).toString()
}
