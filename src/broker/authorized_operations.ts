/**
 * What a caller may do, as bit fields of Kafka's operation numbers. There are no access rules yet, so that
 * everybody may do all that there is.
 */

const OPERATIONS = {
  read: 3,
  write: 4,
  create: 5,
  delete: 6,
  alter: 7,
  describe: 8,
  clusterAction: 9,
  describeConfigs: 10,
  alterConfigs: 11,
  idempotentWrite: 12,
} as const;

function fieldOf(...names: readonly (keyof typeof OPERATIONS)[]): number {
  return names.reduce((field, name) => field | (1 << OPERATIONS[name]), 0);
}

/** Answered when nobody asked. */
export const OPERATIONS_OMITTED = -(2 ** 31);

export const TOPIC_OPERATIONS = fieldOf(
  "read",
  "write",
  "create",
  "delete",
  "alter",
  "describe",
  "describeConfigs",
  "alterConfigs",
);

export const GROUP_OPERATIONS = fieldOf(
  "read",
  "delete",
  "describe",
  "describeConfigs",
  "alterConfigs",
);

export const CLUSTER_OPERATIONS = fieldOf(
  "create",
  "alter",
  "describe",
  "clusterAction",
  "describeConfigs",
  "alterConfigs",
  "idempotentWrite",
);
