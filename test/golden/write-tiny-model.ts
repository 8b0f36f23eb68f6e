/** Writes the tests' tiny model into the folder that is named, for the scripts that make golden values of it. */
import { writeTinyModel } from '../helpers/tiny-model.ts'

await writeTinyModel(process.argv[2]!)
