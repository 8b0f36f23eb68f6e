import { openLocalEngine } from '../../engine/local-engine.ts'
import { engineContract } from './engine-contract.ts'

engineContract('the engine in this process', openLocalEngine)
