/** What the sides of bench/decoding.ts are given on standard input, and what they write a line of for each repeat. */
export interface DecodingTask {
  /** A Hugging Face directory; for llama.cpp a GGUF file. */
  readonly model: string
  /** Where a peer's package lies, for those that are no dependency. */
  readonly package?: string | undefined
  readonly threads: number
  readonly repeats: number
  /** New tokens of each sequence, no fewer and no more. */
  readonly new: number
  /** Ends the common beginning of prompts as an end-of-turn token does in chats. Never drawn. */
  readonly turnEnd: number
  readonly cases: readonly DecodingCase[]
}

export interface DecodingCase {
  readonly name: string
  /** Token ids, all of one length. */
  readonly prompts: readonly (readonly number[])[]
  /** Responses to each prompt. */
  readonly samples: number
  /** 0 is greedy; 1 samples the model itself. */
  readonly temperature: 0 | 1
}

/** Seconds to the first new token of every sequence, and to the last. */
export interface DecodingNumbers {
  readonly name: string
  readonly first: number
  readonly all: number
}

/** Runs every case and writes its numbers. */
export async function timeCases(
  task: DecodingTask,
  seconds: (given: DecodingCase, newTokens: number) => Promise<number>,
): Promise<void> {
  await seconds(task.cases[0]!, 2)
  for (const given of task.cases) {
    for (let repeat = 0; repeat < task.repeats; repeat++) {
      const [first, all] = [await seconds(given, 1), await seconds(given, task.new)]
      process.stdout.write(`${JSON.stringify({ name: given.name, first, all } satisfies DecodingNumbers)}\n`)
    }
  }
}

export function checkLengths(found: readonly number[], expected: number): void {
  const wrong = found.find(length => length !== expected)
  if (wrong !== undefined) throw new Error(`a response has ${wrong} tokens instead of ${expected}`)
}
