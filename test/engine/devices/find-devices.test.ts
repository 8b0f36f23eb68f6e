import assert from 'node:assert/strict'
import { test } from 'node:test'
import { readLoadFailure } from '../../../engine/devices/cuda-libraries.ts'
import { cpuReport } from '../../../engine/devices/find-devices.ts'
import type { ProviderFinding } from '../../../engine/devices/probe.ts'
import type { Outcome } from '../../../engine/devices/run-apart.ts'
import { webgpuReport } from '../../../engine/devices/webgpu-report.ts'

const LOADER = 'INFO | DRIVER:               [0] NVIDIA T4\n'
const USED = `${LOADER}DRIVER:   Using "NVIDIA T4" with driver: "libGLX_nvidia.so.0"\n`
const NO_ADAPTER = {
  kind: 'failed',
  why: 'Failed to get a WebGPU adapter: No supported adapters',
} as const

function trial(part: Partial<Outcome<ProviderFinding>>): Outcome<ProviderFinding> {
  return { ending: { kind: 'done' }, finding: { error: 1e-7 }, words: '', ...part }
}
const onLinux = { skip: process.platform !== 'linux' && 'devices have other loaders here' }

test('a provider that computes wrongly does not work', () => {
  assert.equal(cpuReport(trial({})).state, 'works')
  for (const error of [0.5, Number.NaN]) {
    const { state, detail } = cpuReport(trial({ finding: { error } }))
    assert.equal(state, 'fails')
    assert.match(detail, /computes wrongly/)
  }
})

test('a crash and a hang are told with where they happened', () => {
  const crash = cpuReport(
    trial({ finding: {}, ending: { kind: 'crashed', why: 'died of SIGSEGV', stage: 'computing' } }),
  )
  assert.equal(crash.state, 'fails')
  assert.match(crash.detail, /died of SIGSEGV while computing/)
  const hang = webgpuReport(
    trial({ words: USED, ending: { kind: 'hung', seconds: 60, stage: 'asking for large buffers' } }),
    undefined,
    [],
  )
  assert.equal(hang.state, 'fails')
  assert.match(hang.detail, /no answer within 60 s while asking for large buffers/)
})

test('what lacks for WebGPU is told', onLinux, () => {
  const of = (words: string) => {
    const { state, detail } = webgpuReport(trial({ finding: {}, ending: NO_ADAPTER, words }), undefined, [])
    return `${state}: ${detail}`
  }
  assert.equal(of(''), 'absent: the Vulkan loader libvulkan.so.1 is not installed')
  assert.equal(of('INFO:    Vulkan Loader Version 1.3.239\n'), 'absent: no Vulkan driver offers a device')
  const refusal = `${LOADER}Warning: Vulkan 1.1 required.\n - While initializing adapter (backend=Vulkan)\n`
  assert.equal(of(refusal), 'absent: Vulkan offers NVIDIA T4, which WebGPU refuses: Vulkan 1.1 required.')
})

test("memory is the GPU's own statement, else its Vulkan driver's; limits say where they come from", () => {
  const statement = {
    name: 'NVIDIA T4',
    type: 'discrete GPU',
    driver: 'NVIDIA',
    memory: 15,
    bindingBytes: 2 ** 32,
  }
  const finding = { error: 1e-7, half: true, limits: { bufferBytes: 2 ** 32 } }
  const measured = trial({ words: USED, finding })
  const stated = webgpuReport(measured, [statement], [])
  assert.deepEqual(stated.memory, { free: 15, total: 15, source: 'stated by the driver' })
  const gpu = { name: 'NVIDIA T4', driver: 'NVIDIA 550', total: 16, free: 9 }
  assert.deepEqual(webgpuReport(measured, [statement], [gpu]).memory, {
    free: 9,
    total: 16,
    source: 'stated by NVIDIA 550',
  })
  assert.equal(webgpuReport(measured, undefined, []).memory, undefined)
  const { facts, software } = stated
  assert.equal(software, false)
  assert.deepEqual(
    facts.filter(({ what }) => what.startsWith('largest')).map(({ value, source }) => [value, source]),
    [
      ['4.0 GiB', 'measured'],
      ['4.0 GiB', 'stated by the driver'],
    ],
  )
})

test('a library that CUDA lacks is named', () => {
  const words =
    'FAIL : Failed to load library /n/libonnxruntime_providers_cuda.so with error: libcublasLt.so.13: cannot open shared object file: No such file or directory\n'
  assert.equal(readLoadFailure(words), "libcublasLt.so.13 is not found by the system's loader")
  assert.equal(readLoadFailure('all is well'), undefined)
})
