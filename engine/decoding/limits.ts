/** How much is decoded at a time, on any device; several prompts in a pass on the CPU alone. */

/** Most sequences together. */
export const MOST_SEQUENCES = 32
/** Most tokens of a prompt read in one pass. Longer passes are not faster. */
export const LONGEST_PASS = 128
/** Most tokens that the prompts of a pass have up to its end, which bounds the memory that it takes. */
export const MOST_TOKENS_SEEN = 2048
/** Most bytes kept of passes that several prompts of a call have in common. */
export const MOST_BYTES_KEPT = 256 * 2 ** 20
