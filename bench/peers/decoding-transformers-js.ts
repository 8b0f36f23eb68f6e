/** Decoding by @huggingface/transformers on what peers/onnx_export.py made: a peer of bench/decoding.ts, which starts this. */
import { dirname } from 'node:path'
import { AutoModelForCausalLM, env, Tensor } from '@huggingface/transformers'
import { checkLengths, type DecodingTask, timeCases } from './decoding-task.ts'
import { readStandardInput } from './run-peer.ts'

const task: DecodingTask = JSON.parse(await readStandardInput())
env.allowRemoteModels = false
env.localModelPath = dirname(task.model)
const model = await AutoModelForCausalLM.from_pretrained(task.model, {
  dtype: 'fp32',
  device: 'cpu',
  local_files_only: true,
  session_options: { intraOpNumThreads: task.threads },
})

await timeCases(task, async ({ prompts, samples, temperature }, newTokens) => {
  const all = prompts.flatMap(prompt => Array.from({ length: samples }, () => prompt))
  const shape = [all.length, all[0]!.length]
  const start = performance.now()
  const made = (await model.generate({
    inputs: new Tensor('int64', BigInt64Array.from(all.flat(), BigInt), shape),
    attention_mask: new Tensor('int64', new BigInt64Array(shape[0]! * shape[1]!).fill(1n), shape),
    min_new_tokens: newTokens,
    max_new_tokens: newTokens,
    do_sample: temperature > 0,
    top_k: 0,
  } as unknown as Parameters<typeof model.generate>[0])) as Tensor
  const seconds = (performance.now() - start) / 1000
  checkLengths([made.dims[1]! - shape[1]!], newTokens)
  return seconds
})
