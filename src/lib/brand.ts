/**
 * Identifiers that must not be mixed up, as branded safe integers.
 * Offsets stay plain numbers: they are added on every line, and a brand that is cast back after each
 * sum protects nothing (docs/decisions/0001-branded-ids.md).
 */
import { assert } from "./assert.ts";

declare const brand: unique symbol;
type Brand<Name extends string> = number & { readonly [brand]: Name };

/** A stream of the storage engine. */
export type StreamId = Brand<"StreamId">;
/** A data object (stream set object, stream object or composite). Never used twice. */
export type ObjectId = Brand<"ObjectId">;
/** A broker, as Kafka clients see it. */
export type NodeId = Brand<"NodeId">;
/** One incarnation of a node: the position of its registration entry in the metadata log. */
export type NodeEpoch = Brand<"NodeEpoch">;
/** A period of ownership of a stream; equals the Kafka leader epoch of its partition. */
export type StreamEpoch = Brand<"StreamEpoch">;
/** A place in the metadata log. The first entry has position 1; 0 means "before any entry". */
export type Position = Brand<"Position">;
/** A place in a stream; for a log stream this is the Kafka offset. */
export type Offset = number;

function integer(value: number, name: string): number {
  assert(
    Number.isSafeInteger(value) && value >= 0,
    `${name} is not a non-negative safe integer: ${value}`,
  );
  return value;
}

export function streamId(value: number): StreamId {
  return integer(value, "stream id") as StreamId;
}
export function objectId(value: number): ObjectId {
  return integer(value, "object id") as ObjectId;
}
export function nodeId(value: number): NodeId {
  return integer(value, "node id") as NodeId;
}
export function nodeEpoch(value: number): NodeEpoch {
  return integer(value, "node epoch") as NodeEpoch;
}
export function streamEpoch(value: number): StreamEpoch {
  return integer(value, "stream epoch") as StreamEpoch;
}
export function position(value: number): Position {
  return integer(value, "position") as Position;
}
