/** A random but plausible life of a small cluster: each step is one command, often one to be refused. */
import type { Command, Requester } from "../../src/controller/command.ts";
import { partitionKey } from "../../src/controller/image.ts";
import { type Random, randomInt } from "../../src/env/random.ts";
import { nodeId, objectId, streamEpoch } from "../../src/lib/brand.ts";
import type { StreamRow } from "../../src/controller/image.ts";
import type { StreamRange } from "../../src/storage/ports.ts";
import {
  close,
  open,
  OTHER_TOPIC,
  range,
  register,
  streamObject,
  streamSet,
  TOPIC,
  trim,
  upload,
  type World,
} from "./controller_world.ts";

const NODES = 2;

export class Walk {
  readonly #world: World;
  readonly #random: Random;
  #incarnation = 100;

  constructor(world: World, random: Random) {
    this.#world = world;
    this.#random = random;
  }

  #int(below: number): number {
    return randomInt(this.#random, below);
  }

  #pick<T>(items: readonly T[]): T | undefined {
    return items[this.#int(items.length)];
  }

  #requester(): Requester {
    const node = this.#pick([...this.#world.state.nodes.values()]);
    return node ?? { nodeId: nodeId(0), epoch: 0 as Requester["epoch"] };
  }

  #stream(): StreamRow | undefined {
    return this.#pick([...this.#world.state.streams.values()]);
  }

  /** An id of the requester's that has no row, or a wrong one now and then. */
  #freeId({ nodeId: node, epoch }: Requester): number {
    if (this.#int(10) === 0) return this.#int(200);
    for (const block of this.#world.state.idBlocks.values()) {
      if (block.nodeId !== node || block.epoch !== epoch) continue;
      for (let id: number = block.from; id < block.to; id++) {
        if (!this.#world.state.objects.has(objectId(id))) return id;
      }
    }
    return 0;
  }

  #upload(): Command {
    const by = this.#requester();
    const id = this.#freeId(by);
    const row = this.#stream();
    if (row === undefined) return upload(by, null, [], this.#int(5));
    const start = this.#int(6) === 0 ? row.end + 1 : row.end;
    const of = range(row.streamId, start, start + 1 + this.#int(20));
    const walTrim = this.#world.state.at;
    return this.#int(2) === 0
      ? upload(by, streamSet(id, of), [], walTrim)
      : upload(by, null, [streamObject(id, of)], walTrim);
  }

  /** Merges all stream objects of a stream, or all stream set objects of a node. */
  #compaction(): Command {
    const by = this.#requester();
    const id = this.#freeId(by);
    const { state, streamSets } = this.#world;
    const base = { type: "commit-compaction", by, streamSetObject: null } as const;
    if (this.#int(2) === 0) {
      const row = this.#stream();
      const objects = row?.objects ?? [];
      const replaces = objects.map((object) => ({
        objectId: object,
        ranges: [{ ...state.objects.get(object)!.stream! }],
      }));
      const all = replaces.flatMap(({ ranges }) => ranges);
      if (all.length === 0) return { ...base, replaces, streamObjects: [] };
      const whole = { ...all[0]!, end: all.at(-1)!.end };
      const asComposite = this.#int(2) === 0;
      const links = objects.flatMap((object) => {
        const input = state.objects.get(object)!;
        return input.kind === "composite" ? input.links : [object];
      });
      return {
        ...base,
        replaces,
        streamObjects: [streamObject(id, whole, asComposite ? 1 : 0)],
        composites: asComposite ? [{ objectId: objectId(id), links }] : [],
      };
    }
    const inputs = state.streamSets.get(by.nodeId) ?? [];
    const replaces = inputs.map((object) => ({
      objectId: object,
      ranges: streamSets.get(object)!,
    }));
    const ranges: StreamRange[] = replaces.flatMap(({ ranges: list }) => list);
    return { ...base, replaces, streamObjects: [], streamSetObject: streamSet(id, ...ranges) };
  }

  #recovery(): Command {
    const by = this.#requester();
    const { state } = this.#world;
    const wal = this.#pick([...state.wals.values()].filter(({ state: s }) => s.kind !== "sealed"));
    if (wal === undefined) return { type: "assign-leaders", by };
    const { nodeId: node, epoch } = wal;
    if (wal.state.kind === "open") return { type: "begin-recovery", by, nodeId: node, epoch };
    if (wal.state.kind === "sealed") return { type: "forget-wal", by, nodeId: node, epoch };
    const held = [...state.streams.values()].filter(({ open: isOpen, owner }) =>
      isOpen && owner.nodeId === node && owner.epoch === epoch
    );
    return {
      type: "finish-recovery",
      by: { nodeId: wal.state.by, epoch: state.nodes.get(wal.state.by)!.epoch },
      nodeId: node,
      epoch,
      recovery: wal.state.recovery,
      streamSetObject: null,
      streamObjects: [],
      ends: held.map(({ streamId, end }) => ({ streamId, end })),
      sealedSlot: wal.walTrim + this.#int(3),
    };
  }

  #topic(): Command {
    const topicId = this.#int(2) === 0 ? TOPIC : OTHER_TOPIC;
    const partitions = 1 + this.#int(3);
    switch (this.#int(4)) {
      case 0:
        return { type: "delete-topic", topicId };
      case 1:
        return { type: "create-partitions", topicId, partitions };
      case 2:
        return {
          type: "alter-topic-configs",
          topicId,
          changes: { a: String(this.#int(3)), b: null },
        };
      default:
        return {
          type: "create-topic",
          topicId,
          name: topicId.slice(0, 3),
          partitions,
          replicationFactor: 1,
          configs: {},
          internal: false,
        };
    }
  }

  #garbage(): Command {
    const by = this.#requester();
    const { state } = this.#world;
    const block = this.#pick([...state.idBlocks.values()]);
    if (block === undefined) return { type: "purge", by, objectIds: [] };
    if (this.#int(3) === 0) {
      return { type: "sweep-epoch", by, nodeId: block.nodeId, epoch: block.epoch };
    }
    const destroyed = [...state.objects.values()].filter(({ state: s }) => s === "destroyed");
    const objectIds = destroyed.map(({ objectId: id }) => id);
    return { type: "purge", by, objectIds, blocks: block.sweptAt === null ? [] : [block] };
  }

  next(): Command {
    const by = this.#requester();
    const row = this.#stream();
    const epoch = row?.epoch ?? 0;
    switch (this.#int(16)) {
      case 0:
        return register(this.#int(NODES), this.#incarnation++);
      case 1:
        return this.#topic();
      case 2: {
        const tag = this.#int(2) === 0 ? {} : { tag: partitionKey(TOPIC, 0) };
        return { type: "create-stream", by, epoch: streamEpoch(0), ...tag };
      }
      case 3:
        return { type: "reserve-ids", by, count: 1 + this.#int(8) };
      case 4:
        return row === undefined ? this.#recovery() : open(by, row.streamId, epoch + this.#int(2));
      case 5:
        return row === undefined
          ? this.#recovery()
          : close(row.owner, row.streamId, epoch, row.end);
      case 6:
        return row === undefined
          ? this.#topic()
          : trim(row.owner, row.streamId, epoch, row.start + this.#int(15));
      case 7:
        return this.#compaction();
      case 8:
        return this.#recovery();
      case 9:
        return this.#garbage();
      case 10:
        return { type: "assign-leaders", by };
      case 11:
        return row === undefined || this.#int(4) > 0
          ? { type: "put-kv", key: "k", value: "v", expectedVersion: this.#int(3) }
          : { type: "delete-stream", by, streamId: row.streamId };
      default:
        return this.#upload();
    }
  }
}
