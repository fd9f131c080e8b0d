/** Windows of leases as records of `__consumer_offsets`, and back. */
import { DecodeError } from "../../../lib/bytes.ts";
import {
  LEASE_KEY_VERSION,
  leaseKey,
  leaseValue,
} from "../../../protocol/message/lease_records.ts";
import { decodeGrowing, encodeVersioned } from "../../../protocol/versioned.ts";
import type { TopicPartition } from "../offset_table.ts";
import type { KeyValue } from "../../shard/shard_log.ts";
import type { LeaseWindow, Span, SpanState } from "./window.ts";

const VALUE_VERSION = 0;
const STATES: readonly SpanState[] = ["done", "leased", "returned"];

function keyOf(groupId: string, { topic, partition }: TopicPartition): Uint8Array {
  return encodeVersioned(leaseKey, LEASE_KEY_VERSION, { group: groupId, topic, partition });
}

export function leaseRecord(groupId: string, at: TopicPartition, window: LeaseWindow): KeyValue {
  return {
    key: keyOf(groupId, at),
    value: encodeVersioned(leaseValue, VALUE_VERSION, {
      topicId: window.topicId,
      committedOffset: window.committed,
      startOffset: window.start,
      spans: window.spans.map(({ last, state, holder, untilMs, deliveries }) => ({
        lastOffset: last,
        state: STATES.indexOf(state),
        holder,
        untilTimestamp: untilMs,
        deliveries,
      })),
    }),
  };
}

export function leaseTombstone(groupId: string, at: TopicPartition): KeyValue {
  return { key: keyOf(groupId, at), value: null };
}

/** Throws DecodeError. */
export function readWindow(value: Uint8Array): LeaseWindow {
  const stored = decodeGrowing(leaseValue, value);
  let first = stored.startOffset;
  const spans = stored.spans.map((span): Span => {
    const { lastOffset: last, holder, untilTimestamp: untilMs, deliveries } = span;
    const state = STATES[span.state];
    if (state === undefined || last < first) {
      throw new DecodeError(`Cannot read leases: state ${span.state} of ${first} to ${last}`);
    }
    const read = { first, last, state, holder, untilMs, deliveries };
    first = last + 1;
    return read;
  });
  const { topicId, committedOffset: committed, startOffset: start } = stored;
  return { topicId, committed, start, spans };
}
