/**
 * A Vulkan device for the tests of WebGPU: the one that VK_DRIVER_FILES names, else one in software that
 * test/fixtures/fetch-vulkan-device.sh put into GRASP_TEST_CACHE. To be called before anything opens a WebGPU session:
 * drivers are looked for once a process.
 */
import { existsSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

const FOLDER = join(process.env.GRASP_TEST_CACHE ?? join(tmpdir(), 'grasp-test-cache'), 'vulkan')

/**
 * Chooses a driver.
 * @returns false, or why tests that need it are skipped
 */
export function withoutVulkanDevice(): false | string {
  // Vulkan's loader complains where there is none.
  process.env.XDG_RUNTIME_DIR ??= tmpdir()
  if (process.env.VK_DRIVER_FILES !== undefined) return false
  const driver = join(FOLDER, 'swiftshader.json')
  if (!existsSync(driver)) {
    return `${driver} is not there; run test/fixtures/fetch-vulkan-device.sh, or set VK_DRIVER_FILES`
  }
  process.env.VK_DRIVER_FILES = driver
  return false
}
