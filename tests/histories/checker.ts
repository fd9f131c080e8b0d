/** Judges a history by rules with names. Pure; imports nothing of the broker, so it shares none of its mistakes. */
import * as records from "./check_records.ts";
import * as transactions from "./check_transactions.ts";
import { type Facts, factsOf, type Tell } from "./facts.ts";
import type { Event } from "./history.ts";

const RULES = { ...records, ...transactions } satisfies Record<
  string,
  (facts: Facts, tell: Tell) => void
>;
export type RuleName = keyof typeof RULES;
export const ruleNames = Object.keys(RULES) as RuleName[];

/** Of one rule; the others follow from the first ones. */
const TOLD_MAX = 20;

export interface Finding {
  readonly rule: RuleName;
  readonly what: string;
}

export function check(events: readonly Event[]): Finding[] {
  const facts = factsOf(events);
  return ruleNames.flatMap((rule) => {
    const found: Finding[] = [];
    RULES[rule](facts, (what) => {
      if (found.length < TOLD_MAX) found.push({ rule, what });
    });
    return found;
  });
}
