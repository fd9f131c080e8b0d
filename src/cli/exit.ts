/** Exit codes of the executable, as printed by --help. */
export const EXIT = {
  ok: 0,
  unexpected: 1,
  config: 2,
  fenced: 4,
  data: 5,
} as const;
