/** Exit codes of the executable, as printed by --help. */
export const EXIT = {
  ok: 0,
  unexpected: 1,
  /** Also a store that cannot be used, or stays away: both are for whoever configured it. */
  config: 2,
  fenced: 4,
  data: 5,
} as const;
