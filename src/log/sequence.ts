/** Sequences of idempotent producers: they run 0..2^31-1 and start again at 0. */
export const SEQUENCE_MAX = 2 ** 31 - 1;
export const SEQUENCES = 2 ** 31;

export function sequenceAfter(sequence: number, steps: number): number {
  return (sequence + steps) % SEQUENCES;
}

/** Half of the circle lies ahead, half behind. */
export function isAfter(sequence: number, other: number): boolean {
  const ahead = (sequence - other + SEQUENCES) % SEQUENCES;
  return ahead > 0 && ahead < SEQUENCES / 2;
}
