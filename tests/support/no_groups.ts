/** For tests of what has nothing to do with groups. */
import type { LeaseGateway } from "../../src/http/groups/lease_port.ts";
import { PollWaits } from "../../src/http/groups/poll_waits.ts";
import { testEnv } from "./test_env.ts";

const NONE = { ok: false, error: "COORDINATOR_NOT_AVAILABLE" } as const;

export const NO_GROUPS: LeaseGateway = {
  polls: new PollWaits(testEnv()),
  open: () => Promise.resolve(NONE),
  list: () => Promise.resolve(NONE),
  describe: () => Promise.resolve(NONE),
  delete: () => Promise.resolve(NONE),
};
