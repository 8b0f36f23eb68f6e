/** Where closing failed too after a failure (`await using`), the failure: closing fails because of it. */
export function firstFailure(error: unknown): unknown {
  const isSuppressed = error instanceof Error && error.name === 'SuppressedError' && 'suppressed' in error
  return isSuppressed ? firstFailure(error.suppressed) : error
}
