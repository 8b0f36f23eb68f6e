/** The keys that say how responses are sampled, for every section that samples some. */
import { z } from 'zod'
import { count, fraction } from './fields.ts'

export const samplingKeys = (temperature: number) => ({
  temperature: z.number().min(0).max(100).default(temperature).describe('Sampling temperature; 0 is greedy.'),
  topK: count(0).default(0).describe('Sample among the k most likely tokens only; 0 is off.'),
  topP: z
    .number()
    .gt(0)
    .max(1)
    .default(1)
    .describe('Nucleus sampling: of these the most likely that reach this probability together; 1 is off.'),
  minP: fraction()
    .default(0)
    .describe('Of these the tokens at least this many times as likely as the most likely; 0 is off.'),
  maxNewTokens: count(1)
    .default(512)
    .describe('Most tokens of a response; longer ones are cut and marked `length`.'),
  stop: z
    .array(z.string().min(1))
    .default([])
    .describe('Texts that end a response; their tokens stay part of it.'),
})
