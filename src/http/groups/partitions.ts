/** Topics of a poll as partitions, and where a group begins in those that it has no offset of. */
import type { GroupLeases } from "../../broker/group/lease/group_leases.ts";
import type { LeasedPartition } from "../../broker/group/lease/leases.ts";
import { windowAt } from "../../broker/group/lease/window.ts";
import { HTTP_CURSOR_PARTITIONS_MAX, HTTP_PARTITIONS_OPENED_AT_ONCE } from "../../lib/limits.ts";
import { badRequest, ProblemError, problemOf } from "../problem.ts";
import { allPartitions, topicOf } from "../read/positions.ts";
import type { Isolation, ReadGateway } from "../read_port.ts";

/** Throws ProblemError for a topic that is not there. */
export function partitionsOf(gateway: ReadGateway, topics: readonly string[]): LeasedPartition[] {
  const found = [...new Set(topics)].flatMap((name) => {
    const topic = topicOf(gateway, name);
    const { topicId } = topic;
    return allPartitions(topic).map((partition) => ({ topic: name, topicId, partition }));
  });
  if (found.length <= HTTP_CURSOR_PARTITIONS_MAX) return found;
  throw badRequest(
    `Cannot poll ${found.length} partitions: at most ${HTTP_CURSOR_PARTITIONS_MAX} at once`,
  );
}

/** Where reads find nothing more now. Throws ProblemError. */
export async function endOf(
  gateway: ReadGateway,
  { topicId, partition }: LeasedPartition,
  isolation: Isolation,
): Promise<number> {
  const bounds = await gateway.bounds(topicId, partition, isolation);
  if (!bounds.ok) throw new ProblemError(problemOf(bounds));
  return bounds.latest;
}

/**
 * Fixes where a group begins that begins at the end: what comes until its next poll is its own. Resolves when that
 * is durable. Throws ProblemError and FaultError.
 */
export async function beginAtEnd(
  gateway: ReadGateway,
  leases: GroupLeases,
  partitions: readonly LeasedPartition[],
  isolation: Isolation,
): Promise<void> {
  const unknown = partitions.filter((at) => leases.windowOf(at) === null);
  for (let from = 0; from < unknown.length; from += HTTP_PARTITIONS_OPENED_AT_ONCE) {
    const some = unknown.slice(from, from + HTTP_PARTITIONS_OPENED_AT_ONCE);
    const ends = await Promise.all(some.map((at) => endOf(gateway, at, isolation)));
    if (leases.refusal !== null) return;
    const changes = some.flatMap((at, i) =>
      leases.windowOf(at) === null
        ? [{ at, window: windowAt(at.topicId, -1, ends[i]), commit: true }]
        : []
    );
    await leases.change(changes);
  }
}
