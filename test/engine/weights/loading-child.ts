/** Loads a model directory in a process of its own: prints the bytes of its weights and of the memory that it took at most. */
import { loadModelDirectory } from '../../../engine/weights/model-directory.ts'

const before = process.memoryUsage().rss
const { weights } = await loadModelDirectory(process.argv[2]!)
const bytes = [...weights.values()].reduce((sum, tensor) => sum + 4 * tensor.size, 0)
const peak = process.resourceUsage().maxRSS * 1024 - before
process.stdout.write(JSON.stringify({ bytes, peak }))
