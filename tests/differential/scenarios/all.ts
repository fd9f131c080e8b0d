/** Every scenario, in the order of a run. */
import type { Scenario } from "../script.ts";
import { ADMIN } from "./admin.ts";
import { CONFIGS } from "./configs.ts";
import { CONNECTION } from "./connection.ts";
import { CONSUMER_GROUPS } from "./consumer_groups.ts";
import { FETCH } from "./fetch.ts";
import { GROUPS } from "./groups.ts";
import { PRODUCE } from "./produce.ts";
import { SHARE_FETCH } from "./share_fetch.ts";
import { SHARE_GROUPS } from "./share_groups.ts";
import { TRANSACTIONS } from "./transactions.ts";
import { TOPICS } from "./topics.ts";

export const SCENARIOS: readonly Scenario[] = [
  ...CONNECTION,
  ...CONFIGS,
  ...TOPICS,
  ...PRODUCE,
  ...FETCH,
  ...GROUPS,
  ...CONSUMER_GROUPS,
  ...TRANSACTIONS,
  ...ADMIN,
  ...SHARE_GROUPS,
  ...SHARE_FETCH,
];
