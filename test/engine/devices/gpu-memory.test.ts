import assert from 'node:assert/strict'
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { gpuMemories, readNvidiaSmi } from '../../../engine/devices/gpu-memory.ts'

test('a line of nvidia-smi is a GPU; what is no line is none', () => {
  const text = 'NVIDIA H200, 570.124.06, 143771, 143250\nNo devices were found\n'
  assert.deepEqual(readNvidiaSmi(text), [
    { name: 'NVIDIA H200', driver: 'NVIDIA 570.124.06', total: 143771 * 2 ** 20, free: 143250 * 2 ** 20 },
  ])
})

test('amdgpu says in files what it has and what is taken', async () => {
  const root = await mkdtemp(join(tmpdir(), 'grasp-drm-'))
  try {
    for (const [name, text] of [
      ['mem_info_vram_total', '8573157376\n'],
      ['mem_info_vram_used', '573157376\n'],
    ]) {
      await mkdir(join(root, 'card0', 'device'), { recursive: true })
      await writeFile(join(root, 'card0', 'device', name!), text!)
    }
    await mkdir(join(root, 'card0-DP-1'))
    await mkdir(join(root, 'card1', 'device'), { recursive: true })
    const found = (await gpuMemories(root)).filter(({ driver }) => driver === 'amdgpu')
    assert.deepEqual(found, [
      { name: 'AMD GPU (card0)', driver: 'amdgpu', total: 8573157376, free: 8000000000 },
    ])
  } finally {
    await rm(root, { recursive: true })
  }
})
