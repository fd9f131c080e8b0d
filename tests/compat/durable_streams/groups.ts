/** Groups of the protocol's own tests that are not claimed, and why. A new one is claimed until it stands here. */

export interface Excluded {
  /** How the name of the group begins. */
  readonly name: string;
  readonly why: string;
}

export const EXCLUDED: readonly Excluded[] = [
  {
    name: "Reserved subscription APIs",
    why: "`__ds/` is not there; the suite asks for it only when told to",
  },
];

export interface Group {
  readonly name: string;
  readonly passed: number;
  readonly failed: number;
  readonly skipped: number;
}

/** What vitest says of one test, in its JSON. */
export interface Said {
  readonly ancestorTitles: readonly string[];
  readonly title: string;
  readonly status: string;
  readonly failureMessages?: readonly string[];
}

export function excluded(name: string): Excluded | undefined {
  return EXCLUDED.find((one) => name.startsWith(one.name));
}

export function groupsOf(tests: readonly Said[]): readonly Group[] {
  const groups = new Map<string, { passed: number; failed: number; skipped: number }>();
  for (const { ancestorTitles: [name = ""], status } of tests) {
    const group = groups.get(name) ?? { passed: 0, failed: 0, skipped: 0 };
    groups.set(name, group);
    if (status === "passed") group.passed += 1;
    else if (status === "failed") group.failed += 1;
    else group.skipped += 1;
  }
  return Array.from(groups, ([name, counts]) => ({ name, ...counts }));
}

export function table(groups: readonly Group[]): string {
  const claimed = groups.filter(({ name }) => excluded(name) === undefined);
  const sum = (list: readonly Group[], key: "passed" | "failed" | "skipped") =>
    list.reduce((all, group) => all + group[key], 0);
  const rows = claimed.map(({ name, passed, failed }) => `| ${name} | ${passed} | ${failed} |`);
  const left = EXCLUDED.map(({ name, why }) => {
    const some = groups.filter((group) => group.name.startsWith(name));
    const count = sum(some, "passed") + sum(some, "failed") + sum(some, "skipped");
    return `| ${name} | ${count} | ${why} |`;
  });
  return [
    "| group | passed | failed |",
    "| --- | --- | --- |",
    ...rows,
    `| **all that are claimed** | ${sum(claimed, "passed")} | ${sum(claimed, "failed")} |`,
    "",
    "| not claimed | tests | why |",
    "| --- | --- | --- |",
    ...left,
  ].join("\n");
}
