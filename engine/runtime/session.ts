/**
 * An onnxruntime session. On the CPU results do not depend on the number of threads, nor on what ran before: same
 * model and inputs, same bits.
 *
 * `run` blocks the JavaScript thread that calls it until the graph has run.
 */
import { InferenceSession, type Tensor } from 'onnxruntime-node'
import { describeError, GraspError } from '../../errors/grasp-error.ts'
import { isWritten, WRITTEN } from '../onnx/written-marker.ts'
import { bytesOf } from './bytes-of.ts'

export type Feeds = Readonly<Record<string, Tensor>>
export type Fetched = Readonly<Record<string, Tensor>>

export interface SessionOptions {
  readonly threads: number
  /**
   * How long a thread that has nothing to do looks out for work before it sleeps; 0 by default: see below. Waking a
   * thread costs more than a small operation does, so a graph of many of them gains by it.
   */
  readonly spinMicroseconds?: number
  /** What the model names as external data, by location; only read while it is loaded. */
  readonly external?: ReadonlyMap<string, Tensor>
  /** Writes a profile (Chrome trace JSON) with this prefix when the session is released. */
  readonly profile?: string
  /** An accelerator that runs the whole graph; the CPU where absent. */
  readonly provider?: Provider
}

export interface Provider {
  readonly name: 'cpu' | 'webgpu' | 'cuda'
  /** Outputs that stay in the accelerator's memory; none by default. */
  readonly resident?: 'all' | readonly string[]
}

export class Session {
  readonly name: string
  readonly #session: InferenceSession
  readonly #marked: boolean
  readonly #outputs: readonly string[]

  private constructor(name: string, session: InferenceSession) {
    this.name = name
    this.#session = session
    this.#marked = session.outputNames.includes(WRITTEN)
    this.#outputs = session.outputNames.filter(output => output !== WRITTEN)
  }

  /** @param model the bytes of an ONNX model; @param name names the graph in errors. */
  static async create(name: string, model: Uint8Array, options: SessionOptions): Promise<Session> {
    const { name: provider, resident = [] } = options.provider ?? { name: 'cpu' }
    try {
      const external = [...(options.external ?? [])].map(([path, { data }]) => ({
        path,
        data: bytesOf(data as Float32Array),
      }))
      const session = await InferenceSession.create(model, {
        ...(external.length > 0 && { externalData: external }),
        executionProviders: [provider],
        executionMode: 'sequential',
        graphOptimizationLevel: 'all',
        intraOpNumThreads: options.threads,
        interOpNumThreads: 1,
        // Patterns are kept for every combination of lengths ever seen: with symbolic lengths that is a leak.
        enableMemPattern: false,
        extra: {
          // Its kernels (Arm's, for SME) go another way with one row than with several, and add in another order.
          mlas: { disable_kleidiai: '1' },
          session: {
            // By default onnxruntime's threads spin without end: sessions take turns, and whenever anything else
            // wants a core, spinning takes it away (measured: 2.5 times the time of a training step).
            intra_op:
              options.spinMicroseconds === undefined
                ? { allow_spinning: '0' }
                : { allow_spinning: '1', spin_duration_us: `${options.spinMicroseconds}` },
            set_denormal_as_zero: '1',
            use_deterministic_compute: '1',
            // An operator that the accelerator lacks would take its tensors through the CPU at each run: an error.
            ...(provider === 'webgpu' && { disable_cpu_ep_fallback: '1' }),
          },
        },
        logSeverityLevel: provider === 'cpu' ? 3 : 4,
        ...(resident.length > 0 && {
          preferredOutputLocation: resident === 'all' ? ('gpu-buffer' as const) : locations(resident),
        }),
        ...(options.profile !== undefined && { enableProfiling: true, profileFilePrefix: options.profile }),
      })
      return new Session(name, session)
    } catch (cause) {
      throw new GraspError('ENGINE_FAILED', `graph ${name} cannot be loaded: ${describeError(cause)}`, {
        cause,
      })
    }
  }

  /**
   * Runs the graph. Outputs are new tensors, unless `fetches` maps an output to a tensor that is to take it. Graphs with
   * a marker (onnx/written-marker.ts) copy none of these.
   * @throws GraspError ENGINE_FAILED, naming the graph and the shapes it was given.
   */
  async run(feeds: Feeds, fetches?: Readonly<Record<string, Tensor | null>>): Promise<Fetched> {
    const wanted = fetches ?? Object.fromEntries(this.#outputs.map(name => [name, null]))
    const marked = this.#marked && Object.values(wanted).every(tensor => tensor !== null)
    try {
      return await this.#session.run(feeds, marked ? { [WRITTEN]: null, ...wanted } : wanted)
    } catch (cause) {
      if (marked && isWritten(cause)) return wanted as Fetched
      const given = Object.entries(feeds).map(
        ([name, tensor]) => `${name} ${tensor.type}[${tensor.dims.join()}]`,
      )
      const message = `graph ${this.name} failed on ${given.join(', ')}: ${describeError(cause)}`
      throw new GraspError('ENGINE_FAILED', message, { cause })
    }
  }

  /** Names of the graph's outputs. */
  get outputs(): readonly string[] {
    return this.#outputs
  }

  /** Names of the graph's inputs. */
  get inputs(): readonly string[] {
    return this.#session.inputNames
  }

  async release(): Promise<void> {
    await this.#session.release()
  }
}

function locations(resident: readonly string[]): Record<string, 'gpu-buffer'> {
  return Object.fromEntries(resident.map(output => [output, 'gpu-buffer']))
}
