/** Administration of a broker that has nothing, for tests of other routes. */
import type { AdminGateway } from "../../src/http/admin/admin_port.ts";

const UNKNOWN = { ok: false, error: "UNKNOWN_TOPIC_OR_PARTITION" } as const;

export const NO_ADMIN: AdminGateway = {
  describeConfigs: () => Promise.resolve(null),
  changeTopic: () => Promise.resolve(UNKNOWN),
  describePartitions: () => Promise.resolve(null),
  deleteRecords: () => Promise.resolve([]),
  nodes: () => [],
  featureLevels: () => ({}),
  quotas: () => [],
  putQuota: () => Promise.resolve({ ok: true }),
  costs: () => ({
    produced: 0,
    requests: { writes: 0, reads: 0, deletes: 0, bytesIn: 0, bytesOut: 0 },
    byClass: {},
    costs: [],
  }),
};
