import assert from 'node:assert/strict'
import { freemem, totalmem } from 'node:os'
import { test } from 'node:test'
import { machineMemory, readCachedFiles, statisticsPaths } from '../../../engine/memory/free-memory.ts'

test('what is free is no more than there is', () => {
  const { free, total } = machineMemory()
  assert.ok(free > 0 && free <= total && total <= totalmem())
  assert.ok(free < 2 * freemem())
})

test('statistics are looked for below the path of the control group, and at its root', () => {
  assert.deepEqual(statisticsPaths('9:name=systemd:/\n4:memory:/docker/abc\n0::/\n'), [
    '/sys/fs/cgroup/memory/docker/abc/memory.stat',
    '/sys/fs/cgroup/memory/memory.stat',
    '/sys/fs/cgroup/memory.stat',
  ])
  assert.deepEqual(statisticsPaths('0::/user.slice\n'), [
    '/sys/fs/cgroup/user.slice/memory.stat',
    '/sys/fs/cgroup/memory.stat',
  ])
  assert.deepEqual(statisticsPaths(''), [])
})

test('files that are kept in memory are counted, whatever else there is', () => {
  const text =
    'anon 409600\nfile 734113792\ninactive_file 734093312\nactive_file 20480\ntotal_inactive_file 5\n'
  assert.equal(readCachedFiles(text), 734113792)
  assert.equal(readCachedFiles('anon 1\n'), 0)
})
