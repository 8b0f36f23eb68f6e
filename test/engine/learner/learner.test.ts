import { Learner } from '../../../engine/learner/learner.ts'
import { initialState, type OptimiserState } from '../../../engine/optimiser/adamw.ts'
import { learnerContract } from './learner-contract.ts'

learnerContract('Learner', async (config, options) => {
  const learner = await Learner.create(config, options)
  let state: OptimiserState | undefined
  return {
    hiddenStates: (weights, sequences) => learner.hiddenStates(weights, sequences),
    numbers: (student, teacher, observed) => learner.numbers(student, teacher, observed),
    logits: input => learner.logits(input),
    accumulate: (weights, head, items) => learner.accumulate(weights, head, items),
    gradient: async parameter => learner.gradient(parameter),
    discard: () => learner.discard(),
    update: async (weights, how) => {
      state ??= initialState(weights)
      return learner.update(weights, state, how)
    },
    close: () => learner.close(),
  }
})
