/** A metadata state that takes commands directly, and checks the invariants after every entry. */
import assert from "node:assert/strict";
import {
  nodeEpoch,
  nodeId,
  type ObjectId,
  objectId,
  type Position,
  position,
  streamEpoch,
  type StreamId,
  streamId,
} from "../../src/lib/brand.ts";
import type { Command, RefusalReason, Requester, Results } from "../../src/controller/command.ts";
import { apply } from "../../src/controller/apply.ts";
import { type AnyVerdict, decide } from "../../src/controller/decide.ts";
import {
  epochsIncrease,
  idsMoveForward,
  objectsCover,
  rangesHold,
  summaryOf,
} from "../../src/controller/invariants.ts";
import type { MetadataRecord } from "../../src/controller/record.ts";
import { Draft, State } from "../../src/controller/state.ts";
import type { NewStreamObject, NewStreamSetObject, StreamRange } from "../../src/storage/ports.ts";

export const CLUSTER = "test-cluster";
export const TOPIC = "a".repeat(32);
export const OTHER_TOPIC = "b".repeat(32);

export function incarnationOf(n: number): string {
  return n.toString(16).padStart(32, "0");
}

export function register(node: number, incarnation = node): Command {
  return {
    type: "register-node",
    nodeId: nodeId(node),
    incarnation: incarnationOf(incarnation),
    host: "h",
    port: 9092,
  };
}

export function by(node: number, epoch: number): Requester {
  return { nodeId: nodeId(node), epoch: nodeEpoch(epoch) };
}

export function range(stream: number, start: number, end: number): StreamRange {
  return { streamId: streamId(stream), start, end };
}

export function streamSet(id: number, ...ranges: StreamRange[]): NewStreamSetObject {
  return { objectId: objectId(id), size: 10, bytesCrc: id + 1, indexCrc: id + 2, ranges };
}

export function streamObject(id: number, of: StreamRange, attributes = 0): NewStreamObject {
  const crcs = { bytesCrc: id + 1, indexCrc: id + 2 };
  return { objectId: objectId(id), size: 10, ...crcs, range: of, attributes };
}

export function upload(
  who: Requester,
  streamSetObject: NewStreamSetObject | null,
  streamObjects: readonly NewStreamObject[] = [],
  walTrim = 0,
): Command {
  return { type: "commit-upload", by: who, commit: { streamSetObject, streamObjects, walTrim } };
}

/** Range lists of stream set objects that a command would commit, for the coverage invariant. */
export function streamSetRanges(command: Command): [ObjectId, readonly StreamRange[]][] {
  const object = command.type === "commit-upload"
    ? command.commit.streamSetObject
    : command.type === "commit-compaction" || command.type === "finish-recovery"
    ? command.streamSetObject
    : null;
  return object === null ? [] : [[object.objectId, object.ranges]];
}

/** The results of all commands in one: the caller knows which command it ran. */
type Answer =
  & Results["register-node"]
  & Results["begin-recovery"]
  & Results["create-stream"]
  & Results["reserve-ids"];

export class World {
  readonly state = new State(CLUSTER);
  readonly streamSets = new Map<ObjectId, readonly StreamRange[]>();
  readonly records: (readonly MetadataRecord[])[] = [];

  get next(): Position {
    return position(this.state.at + 1);
  }

  /** Decides and, if there is something to write, applies one entry. */
  run(command: Command): AnyVerdict {
    const at = this.next;
    const verdict = decide(this.state, command, at);
    if (!verdict.ok || verdict.records.length === 0) return verdict;
    const before = summaryOf(this.state);
    const draft = new Draft(this.state);
    for (const record of verdict.records) apply(draft, record, at);
    draft.fold(at);
    this.records.push(verdict.records);
    for (const [id, ranges] of streamSetRanges(command)) this.streamSets.set(id, ranges);
    for (
      const problem of [
        epochsIncrease(before, this.state),
        idsMoveForward(before, this.state),
        rangesHold(this.state),
        objectsCover(this.state, this.streamSets),
      ]
    ) assert.equal(problem, null, `after ${command.type} at ${at}`);
    return verdict;
  }

  /** The result of a command that must succeed. */
  ok(command: Command): Answer {
    const verdict = this.run(command);
    assert.ok(verdict.ok, `${command.type} refused: ${JSON.stringify(verdict)}`);
    return verdict.result as Answer;
  }

  node(id: number, incarnation = id): Requester {
    const { epoch } = this.ok(register(id, incarnation));
    return { nodeId: nodeId(id), epoch };
  }

  stream(who: Requester, epoch: number, tag?: string): StreamId {
    const base = { type: "create-stream", by: who, epoch: streamEpoch(epoch) } as const;
    return this.ok(tag === undefined ? base : { ...base, tag }).streamId;
  }

  ids(who: Requester, count: number): ObjectId {
    return this.ok({ type: "reserve-ids", by: who, count }).first;
  }

  topic(partitions = 1, topicId = TOPIC, name = "t"): void {
    this.ok({
      type: "create-topic",
      topicId,
      name,
      partitions,
      replicationFactor: 1,
      configs: {},
      internal: false,
    });
  }
}

export function outcome(world: World, command: Command): RefusalReason | "ok" | "no records" {
  const verdict = world.run(command);
  if (!verdict.ok) return verdict.reason;
  return verdict.records.length === 0 ? "no records" : "ok";
}

export function open(who: Requester, stream: StreamId, epoch: number): Command {
  return { type: "open-stream", by: who, streamId: stream, epoch: streamEpoch(epoch) };
}

export function close(who: Requester, stream: StreamId, epoch: number, end: number): Command {
  return { type: "close-stream", by: who, streamId: stream, epoch: streamEpoch(epoch), end };
}

export function trim(who: Requester, stream: StreamId, epoch: number, start: number): Command {
  return { type: "trim-stream", by: who, streamId: stream, epoch: streamEpoch(epoch), start };
}
