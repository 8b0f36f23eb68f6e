import assert from 'node:assert/strict'
import { test } from 'node:test'
import { devicesText } from '../../../cli/doctor/devices.ts'
import { fitText, largestText, roomsOf } from '../../../cli/doctor/memory.ts'
import type { DeviceReport } from '../../../engine/devices/device.ts'
import { fitOf, savings } from '../../../engine/memory/fit.ts'
import { knownModels } from '../../../engine/memory/known-models.ts'
import { DEFAULT_SETTINGS } from '../../../engine/memory/settings.ts'

const GIB = 2 ** 30
const GPU: DeviceReport = {
  provider: 'webgpu',
  state: 'works',
  detail: '',
  name: 'NVIDIA T4',
  software: false,
  facts: [{ what: 'f16', value: 'yes', source: 'measured' }],
}
const CPU: DeviceReport = { provider: 'cpu', state: 'works', detail: '', facts: [] }
const memory = { free: 12 * GIB, total: 15 * GIB, source: 'stated by NVIDIA 550' }

test('models have room on what works and whose memory is known', () => {
  const names = (...devices: DeviceReport[]) =>
    roomsOf(devices, GIB).map(({ device, free }) => [device, free / GIB])
  assert.deepEqual(names(CPU, { ...GPU, memory }), [
    ['cpu', 1],
    ['webgpu', 12],
  ])
  assert.deepEqual(names({ ...CPU, state: 'fails' }, GPU), [])
  // A software device has no more than the machine.
  assert.deepEqual(names({ ...GPU, software: true, memory }), [['webgpu', 1]])
})

test('devices are told with what is known of them, and where it comes from', () => {
  const text = devicesText([
    CPU,
    { ...GPU, memory },
    { ...CPU, provider: 'cuda', state: 'absent', detail: 'no library' },
  ])
  assert.equal(
    text,
    `Devices
  cpu     works
  webgpu  works  NVIDIA T4
  cuda    none   no library

webgpu: NVIDIA T4
  f16     yes                      measured
  memory  15.0 GiB, 12.0 GiB free  stated by NVIDIA 550`,
  )
  assert.match(devicesText([GPU]), /memory +not known/)
})

test('what a model takes adds up, and what would make room is told where it lacks', () => {
  const { config } = knownModels()[0]!
  const of = (free?: number) => {
    const fit = fitOf(config, DEFAULT_SETTINGS, free ?? Number.POSITIVE_INFINITY)
    const found = savings(config, DEFAULT_SETTINGS, fit.length)
    return fitText({ device: 'cpu', ...(free && { free }), context: 8192, fit, savings: found })
  }
  const tight = of(9 * GIB)
  assert.match(
    tight,
    /^Memory on cpu, for sequences \(prompt and response\) of 1,024 tokens\n {2}GiB +training +decoding\n/,
  )
  const column = [...tight.matchAll(/^ {2}(.+?) +(\d+\.\d\d) +(?:\d+\.\d\d|–)$/gm)].map(
    ([, what, value]) => [what, Number(value)] as const,
  )
  const of2 = (what: string) => column.find(([name]) => name === what)![1]
  const parts = column.filter(([what]) => what !== 'in all' && what !== 'free')
  const sum = parts.reduce((sum, [, value]) => sum + value, 0)
  assert.ok(parts.length > 8 && Math.abs(sum - of2('in all')) < 0.05, tight)
  assert.match(tight, /training fits, with sequences of up to [\d,]+ tokens \(the context is 8,192\)\n/)
  assert.match(
    tight,
    /Less memory for training is needed with\n {4}training\.lora\.rank: 16 +saves [\d.]+ GiB\n/,
  )
  assert.match(of(GIB / 2), /training does not fit\n {2}decoding does not fit\n/)
  assert.match(of(1000 * GIB), /of up to 8,192 tokens \(all of the model's context\)$/)
  const small = fitText({
    device: 'cpu',
    free: GIB,
    context: 8192,
    fit: {
      ...fitOf(config, DEFAULT_SETTINGS, GIB),
      use: { training: use(2 ** 20), decoding: use(2 ** 19) },
    },
    savings: [],
  })
  assert.match(small, /^ {2}MiB +training +decoding\n {2}weights +1\.00 +0\.50\n/m)
  const unknown = of()
  assert.match(unknown, /how much memory cpu has is not known$/)
  assert.doesNotMatch(unknown, /fits/)
})

function use(bytes: number) {
  return { parts: [{ what: 'weights', bytes }], bytes }
}

test('where nothing fits, that is told', () => {
  const text = largestText({ device: 'cpu', free: GIB / 4 }, [{ use: 'decoding', parameters: 0 }])
  assert.equal(text, 'Largest models that fit on cpu, in 256 MiB\n  decoding  none fits')
})
