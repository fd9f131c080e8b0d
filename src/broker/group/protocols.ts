/** Which protocol a group uses: pure counting over what its members offer. */
import { equalBytes } from "../../lib/bytes.ts";
import type { Group, JoinRequest, Member, Protocol } from "./group.ts";

/** Names that every member offers. */
function commonProtocols(members: Iterable<Member>): ReadonlySet<string> {
  const [first, ...others] = members;
  let common = new Set((first?.protocols ?? []).map(({ name }) => name));
  for (const { protocols } of others) {
    const offered = new Set(protocols.map(({ name }) => name));
    common = new Set([...common].filter((name) => offered.has(name)));
  }
  return common;
}

/** Each member votes for its first name among those common to all; most votes win, earlier votes break ties. */
export function chooseProtocol(members: Iterable<Member>): string | null {
  const all = [...members];
  const common = commonProtocols(all);
  const votes = new Map<string, number>();
  for (const { protocols } of all) {
    const choice = protocols.find(({ name }) => common.has(name))?.name;
    if (choice !== undefined) votes.set(choice, (votes.get(choice) ?? 0) + 1);
  }
  let best: string | null = null;
  for (const [name, count] of votes) if (best === null || count > votes.get(best)!) best = name;
  return best;
}

/** Whether a join fits the group's type and leaves at least one common name. */
export function fits(group: Group, request: JoinRequest): boolean {
  if (request.protocolType === "" || request.protocols.length === 0) return false;
  const others = [...group.members.values()].filter(({ memberId }) =>
    memberId !== request.memberId
  );
  if (others.length === 0) {
    return group.members.size === 0 || group.protocolType === request.protocolType;
  }
  if (group.protocolType !== request.protocolType) return false;
  const common = commonProtocols(others);
  return request.protocols.some(({ name }) => common.has(name));
}

export function sameProtocols(a: readonly Protocol[], b: readonly Protocol[]): boolean {
  return a.length === b.length &&
    a.every((protocol, i) =>
      protocol.name === b[i]!.name && equalBytes(protocol.metadata, b[i]!.metadata)
    );
}
