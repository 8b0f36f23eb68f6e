/** Root-mean-square normalisation over the last axis (Zhang & Sennrich, arXiv:1910.07467). */
import { float } from '../../onnx/attribute.ts'
import { siblingOutput } from '../../onnx/graph-builder.ts'
import { expectShape, type Operation, type Value } from '../value.ts'
import { linear } from './linear.ts'
import { multiply } from './multiply.ts'
import { reshape } from './reshape.ts'
import { scale } from './scale.ts'
import { subtract } from './subtract.ts'
import { sumTo } from './sum-to.ts'

/** y = x̂ · weight, x̂ = x · r, r = 1 / √(mean(x²) + epsilon). x is [.., D], weight [D]. */
export function rmsNorm(x: Value, weight: Value, epsilon: number): Value {
  expectShape(weight.shape.length === 1 && weight.shape[0] === x.shape.at(-1), 'rmsNorm', x, weight)
  const width = Number(x.shape.at(-1))
  const operation: Operation = {
    name: 'rmsNorm',
    cheap: true,
    emit(builder, inputs) {
      const attributes = { axis: -1, epsilon: float(epsilon), stash_type: 1 }
      return builder.nodes('SimplifiedLayerNormalization', inputs, attributes, { outputs: 2 })[0]!
    },
    // With t = dy · x̂: dw = Σ t, and dx = r · (dy · w − x̂ · mean(t · w)).
    gradient(value, adjoint) {
      const inverse: Value = { operation: inverseRms, inputs: [value], shape: [...x.shape.slice(0, -1), 1] }
      const normed = multiply(x, inverse)
      const t = multiply(adjoint, normed)
      const mean = scale(linear(t, reshape(weight, [1, width])), 1 / width)
      const dx = multiply(subtract(multiply(adjoint, weight), multiply(normed, mean)), inverse)
      return [dx, sumTo(t, weight.shape)]
    },
  }
  return { operation, inputs: [x, weight], shape: x.shape }
}

/** r, which the normalisation has as its second output. */
const inverseRms: Operation = {
  name: 'inverse rms',
  cheap: true,
  emit: (_, [normed]) => siblingOutput(normed!, 1),
}
