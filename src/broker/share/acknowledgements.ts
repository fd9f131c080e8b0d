/** Acknowledgements as they come in requests: what must hold of them before any record is looked at, and their fate. */
import type { ErrorName } from "../../protocol/error_code.ts";
import type { BrokerServices } from "../handler.ts";
import { lastOfEach } from "../many.ts";
import type { ShareGroups } from "./share_groups.ts";
import type { ShareMember, SharePlace } from "./share_sessions.ts";
import { type Acknowledgement, REJECT, RENEW } from "./window.ts";

export interface RequestedAcknowledgements {
  readonly place: SharePlace;
  readonly batches: readonly {
    readonly firstOffset: number;
    readonly lastOffset: number;
    readonly acknowledgeTypes: readonly number[];
  }[];
}

export interface Acknowledged {
  readonly place: SharePlace;
  readonly error: ErrorName;
}

export interface AcknowledgeServices extends Pick<BrokerServices, "topics"> {
  readonly shareGroups: ShareGroups;
}

const RENEW_SINCE = 2;

const WORDS: Partial<Record<ErrorName, string>> = {
  INVALID_RECORD_STATE: "Not all of the records are acquired by the member",
  INVALID_REQUEST: "The acknowledgements do not say what to do with which acquired records",
};

/** What is wrong, for the answer. */
export function acknowledgeMessage(error: ErrorName): string | null {
  return WORDS[error] ?? null;
}

/** Kafka's checks: in order, none overlapping, a type for all of a range or one for each, and only known ones. */
function isValid(
  batches: RequestedAcknowledgements["batches"],
  version: number,
  mayRenew: boolean,
): boolean {
  const highest = version >= RENEW_SINCE ? RENEW : REJECT;
  let previous = -1;
  for (const { firstOffset: first, lastOffset: last, acknowledgeTypes: types } of batches) {
    if (first > last || first < previous || types.length === 0) return false;
    if (types.length > 1 && last - first !== types.length - 1) return false;
    if (types.some((type) => type < 0 || type > highest)) return false;
    if (!mayRenew && types.includes(RENEW)) return false;
    previous = last;
  }
  return true;
}

async function acknowledgeOne(
  { topics, shareGroups }: AcknowledgeServices,
  { groupId, memberId }: ShareMember,
  { place, batches }: RequestedAcknowledgements,
  isSound: boolean,
): Promise<ErrorName> {
  if (topics.findById(place.topicId) === undefined) return "UNKNOWN_TOPIC_ID";
  if (!isSound) return "INVALID_REQUEST";
  // One that nobody reads here has nothing to acknowledge.
  const partition = shareGroups.peek({ groupId, ...place });
  if (partition === undefined) return "UNKNOWN_TOPIC_OR_PARTITION";
  const acknowledgements = batches.map((one): Acknowledgement => ({
    first: one.firstOffset,
    last: one.lastOffset,
    types: one.acknowledgeTypes,
  }));
  return await partition.acknowledge(memberId, acknowledgements) ?? "NONE";
}

/** Each partition by itself, said once; resolves when all of it is durable or refused. */
export async function acknowledgeAll(
  services: AcknowledgeServices,
  member: ShareMember,
  requested: readonly RequestedAcknowledgements[],
  version: number,
  mayRenew: boolean,
): Promise<readonly Acknowledged[]> {
  const once = lastOfEach(requested, ({ place }) => `${place.topicId}/${place.partition}`);
  return await Promise.all(once.map(async (one) => ({
    place: one.place,
    error: await acknowledgeOne(
      services,
      member,
      one,
      isValid(one.batches, version, mayRenew),
    ),
  })));
}
