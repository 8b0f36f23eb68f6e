/** The end of the model as graphs over N tokens: final norm, output head, and what is computed of the logits. */
import type { ModelConfig } from '../architectures/config.ts'
import { logitsOf } from '../architectures/logits.ts'
import { norm } from '../architectures/norm.ts'
import { gradient } from '../graph/gradient.ts'
import { input } from '../graph/input.ts'
import { buildModel } from '../graph/model.ts'
import { gatherLast } from '../graph/operations/gather-last.ts'
import { logSoftmax } from '../graph/operations/log-softmax.ts'
import { maxLast } from '../graph/operations/max-last.ts'
import { subtract } from '../graph/operations/subtract.ts'
import type { Value } from '../graph/value.ts'
import { forwardKl } from '../losses/forward-kl.ts'
import { LOSS_KINDS, type LossKind } from '../losses/loss-kind.ts'

/** `x` [N, D] and `norm` [D] to `y` [N, D]. */
export function normGraph(config: ModelConfig): Uint8Array {
  const { hiddenSize: D } = config
  return buildModel('final norm', { y: norm(config, input('x', ['N', D]), input('norm', [D])) })
}

/** `hidden` [N, D] (after the final norm) and `head` [V, D] to `logits` [N, V]. */
export function logitsGraph(config: ModelConfig): Uint8Array {
  const { hiddenSize: D, vocabularySize: V } = config
  const logits = logitsOf(config, input('hidden', ['N', D]), input('head', [V, D]))
  return buildModel('logits', { logits }, {}, true)
}

/** Whether norm and head are trained, and if so, whether their gradients are added to sums or begin them. */
export type HeadGradients = 'none' | 'first' | 'added'

/**
 * Loss and its gradients. Inputs: `x` [N, D] before the final norm, `norm`, `head`, `rate` [N, 1] (the
 * weight of each token's loss in the sum that is differentiated), the running sums `sum.norm` and `sum.head`,
 * and those of the loss. Outputs: `loss` [N, 1], unweighted; `dx`; `gradient.norm` and `gradient.head`: the
 * sums with this gradient added. Where it is the first there are no sums to be added to.
 */
export function lossGraph(config: ModelConfig, kind: LossKind, gradients: HeadGradients): Uint8Array {
  const { hiddenSize: D, vocabularySize: V } = config
  const x = input('x', ['N', D])
  const weight = input('norm', [D])
  const head = input('head', [V, D])
  const loss = LOSS_KINDS[kind](logitsOf(config, norm(config, x, weight), head), config)
  const rate = input('rate', ['N', 1])
  if (gradients === 'none') {
    const [dx] = gradient(loss, rate, [x])
    return buildModel(`loss ${kind}`, { loss, dx: dx! }, {}, true)
  }
  const sums = () =>
    new Map([
      [weight, input('sum.norm', [D])],
      [head, input('sum.head', [V, D])],
    ])
  const onto = gradients === 'added' ? sums() : new Map<Value, Value>()
  const [dx, dNorm, dHead] = gradient(loss, rate, [x, weight, head], { onto })
  const outputs = { loss, dx: dx!, 'gradient.norm': dNorm!, 'gradient.head': dHead! }
  return buildModel(`loss ${kind}`, outputs, {}, true)
}

/**
 * Per-token numbers of both sides: `student.hidden`, `teacher.hidden` [N, D] after the final norm,
 * `student.head`, `teacher.head` and `observed` [N, 1] int64 to `student.lse`, `teacher.lse`, `student.logp`,
 * `teacher.logp` and `kl`, each [N, 1].
 */
export function numbersGraph(config: ModelConfig): Uint8Array {
  const { hiddenSize: D, vocabularySize: V } = config
  const observed = input('observed', ['N', 1], 'int64')
  const logits = (side: string) =>
    logitsOf(config, input(`${side}.hidden`, ['N', D]), input(`${side}.head`, [V, D]))
  return buildModel('token numbers', tokenNumbers(logits('student'), logits('teacher'), observed), {}, true)
}

/** The outputs of `numbersGraph`, of logits [N, V] of both sides and `observed` [N, 1] int64. */
export function tokenNumbers(student: Value, teacher: Value, observed: Value): Record<string, Value> {
  const numbers = (logits: Value) => {
    const logp = logSoftmax(logits)
    // max l = max log p + lse, so that the log-sum-exp costs no second pass of exponentials.
    return { lse: subtract(maxLast(logits), maxLast(logp)), logp: gatherLast(logp, observed) }
  }
  const [s, t] = [numbers(student), numbers(teacher)]
  return {
    'student.lse': s.lse,
    'teacher.lse': t.lse,
    'student.logp': s.logp,
    'teacher.logp': t.logp,
    kl: forwardKl(student, teacher),
  }
}
