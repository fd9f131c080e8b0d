/**
 * The machines: one supervisor per node id, which starts a process again when it ends; rivals with the same node
 * id; and the failure detector, which may be wrong and may send two nodes to recover the same dead one.
 */
import { walKey } from "../../../src/controller/image.ts";
import type { State } from "../../../src/controller/state.ts";
import { type Random, randomInt } from "../../../src/env/random.ts";
import { type NodeEpoch, type NodeId, nodeId } from "../../../src/lib/brand.ts";
import { FaultError, isFault, messageOf } from "../../../src/lib/errors.ts";
import { METADATA_POLL_MS } from "../../../src/lib/limits.ts";
import { parseLogKey } from "../checker/keys.ts";
import type { SimProcess } from "../process.ts";
import { between, chance, pick } from "../world.ts";
import { CLUSTER_ID } from "./cluster_id.ts";
import { HOUR_MS } from "./settings.ts";
import { type NodeParts, StorageNode } from "./node.ts";

const RESTART_MS = 500;

export interface Dead {
  readonly nodeId: NodeId;
  readonly epoch: NodeEpoch;
}

export class Fleet {
  readonly #parts: NodeParts;
  readonly #random: Random;
  readonly #nodes: StorageNode[] = [];
  /** The newest that each has registered. */
  readonly #epochs = new Map<SimProcess, number>();
  readonly #state: () => State;
  /** Who is at a recovery; the dead are not waited for. */
  readonly #recovering = new Set<StorageNode>();
  /** Node ids whose processes are started again; the others stay dead until they are wanted. */
  readonly #wanted = new Set<NodeId>();
  readonly nodeIds: readonly NodeId[];
  onProcess: (process: SimProcess) => void = () => {};
  starts = 0;
  fenced = 0;
  recoveries = 0;

  constructor(parts: NodeParts, state: () => State) {
    this.#parts = parts;
    this.#state = state;
    this.#random = parts.world.random("fleet");
    this.nodeIds = Array.from({ length: parts.settings.nodes }, (_, i) => nodeId(i + 1));
  }

  alive(): readonly StorageNode[] {
    return this.#nodes.filter(({ process }) => process.alive);
  }

  serving(): readonly StorageNode[] {
    return this.#nodes.filter(({ serving }) => serving !== null);
  }

  /** True time at which the last of those that stand still goes on. */
  get stillUntilMs(): number {
    return Math.max(0, ...this.alive().map(({ process }) => process.pausedUntilMs));
  }

  /** One process per node id, and each serves. */
  get isSettled(): boolean {
    return this.alive().length === this.nodeIds.length &&
      this.serving().length === this.nodeIds.length;
  }

  /** Every incarnation that serves is the one in the log, and nobody is at recovering it. */
  get isCurrent(): boolean {
    return this.#recovering.size === 0 && this.serving().every(({ nodeId: id, serving }) => {
      const row = this.#state().nodes.get(id);
      return row?.epoch === serving!.incarnation.requester.epoch && row.state === "live";
    });
  }

  registered(process: SimProcess, at: number): void {
    this.#epochs.set(process, at);
  }

  /** True for a process that was replaced by one with its node id or recovered by another, whether or not it knows. */
  isReplaced(process: SimProcess): boolean {
    const node = this.#nodes.find((one) => one.process === process);
    const row = node === undefined ? undefined : this.#state().nodes.get(node.nodeId);
    return row !== undefined && (row.epoch !== this.#epochs.get(process) || row.state !== "live");
  }

  start(id: NodeId): StorageNode {
    this.#wanted.add(id);
    const node = new StorageNode(this.#parts, id, `n${id}.${++this.starts}`);
    this.#nodes.push(node);
    this.#parts.world.note(`${node.process.name} starts`);
    this.onProcess(node.process);
    node.onExit = (error) => this.#onExit(node, error);
    node.start();
    return node;
  }

  /** Those that are not running. */
  startAll(): void {
    for (const id of this.nodeIds) {
      if (!this.alive().some((node) => node.nodeId === id)) this.start(id);
    }
  }

  #onExit({ nodeId: id, process }: StorageNode, error: unknown): void {
    const { world } = this.#parts;
    const text = messageOf(error);
    if (isFault(error, "fenced")) this.fenced++;
    else if (!(error instanceof FaultError)) {
      world.violated(`${process.name} ends by a bug: ${text}`);
    } else if (!error.retriable) world.violated(`${process.name} ends: ${error.code}: ${text}`);
    this.#restart(id);
  }

  #restart(id: NodeId): void {
    const { world } = this.#parts;
    world.after(RESTART_MS + between(this.#random, 0, 2_000), () => {
      const runs = this.alive().some((node) => node.nodeId === id);
      if (this.#wanted.has(id) && !runs) this.start(id);
    });
  }

  /** kill -9; a supervisor starts it again, at once or only when the storm is over. */
  kill(node: StorageNode, comesBack: boolean): void {
    node.process.kill("killed");
    if (!comesBack) this.#wanted.delete(node.nodeId);
    else this.#restart(node.nodeId);
  }

  /** What frequent polls would see, without the days of polls that see nothing; and all look once an hour. */
  lookAfterChanges(): void {
    const { world, store } = this.#parts;
    const lookAll = () => {
      for (const node of this.serving()) node.process.deliver(() => void node.look());
      world.after(HOUR_MS, lookAll);
    };
    world.after(HOUR_MS, lookAll);
    const looking = new Set<StorageNode>();
    store.onLanded(({ op, key, created }) => {
      if (op !== "create" || !created || parseLogKey(CLUSTER_ID, key) === null) return;
      for (const node of this.serving()) {
        if (looking.has(node)) continue;
        looking.add(node);
        world.after(between(this.#random, 0, METADATA_POLL_MS), () => {
          looking.delete(node);
          node.process.deliver(() => void node.look());
        });
      }
    });
  }

  async stopAll(): Promise<void> {
    this.#wanted.clear();
    await Promise.all(this.alive().map((node) => node.stop()));
  }

  // --- recovery -------------------------------------------------------------------------------

  /** WALs that are not sealed and belong to no process that runs. */
  dead(): Dead[] {
    const current = new Set<string>();
    for (const node of this.serving()) {
      const { nodeId: id, epoch } = node.serving!.incarnation.requester;
      if (node.process.pausedUntilMs <= this.#parts.world.nowMs) current.add(walKey(id, epoch));
    }
    const found: Dead[] = [];
    for (const { nodeId: id, epoch, state } of this.#state().wals.values()) {
      if (state.kind !== "sealed" && !current.has(walKey(id, epoch))) {
        found.push({ nodeId: id, epoch });
      }
    }
    return found;
  }

  /** Any WAL that is not sealed: a suspicion may be wrong. */
  #suspect(): Dead | null {
    const all = [...this.#state().wals.values()].filter(({ state }) => state.kind !== "sealed");
    return all.length === 0 ? null : pick(this.#random, all);
  }

  /** One node or two recover one that is taken for dead. */
  async recoverSome(): Promise<void> {
    const dead = this.dead();
    const isWrong = dead.length === 0 || chance(this.#random, 0.3);
    const target = isWrong ? this.#suspect() : pick(this.#random, dead);
    const able = this.serving().filter((node) =>
      node.serving!.incarnation.requester.epoch !== target?.epoch && !this.#recovering.has(node)
    );
    if (target === null || able.length === 0) return;
    const first = pick(this.#random, able);
    const work = [this.recoverBy(first, target)];
    const others = able.filter((node) => node !== first);
    if (others.length > 0 && chance(this.#random, 0.3)) {
      work.push(this.recoverBy(pick(this.#random, others), target));
    }
    await Promise.all(work);
  }

  /** A node recovers one at a time. Resolves in any case; false when it has to be tried again. */
  async recoverBy(node: StorageNode, { nodeId: id, epoch }: Dead): Promise<boolean> {
    if (this.#recovering.has(node)) return false;
    const { world } = this.#parts;
    const { name } = node.process;
    world.note(`${name} recovers node ${id} epoch ${epoch}`);
    this.#recovering.add(node);
    node.process.onDeath(() => this.#recovering.delete(node));
    try {
      await node.recover(id, epoch);
      this.recoveries++;
      return true;
    } catch (error) {
      const text = messageOf(error);
      world.note(`${name} does not recover node ${id} epoch ${epoch}: ${text}`);
      const isExpected = isFault(error) &&
        (error.retriable || error.code === "fenced" || error.code === "closed");
      if (!isExpected) {
        world.violated(`${name} fails to recover node ${id} epoch ${epoch}: ${text}`);
      }
      return false;
    } finally {
      this.#recovering.delete(node);
    }
  }

  pickServing(): StorageNode | null {
    const serving = this.serving();
    return serving.length === 0 ? null : serving[randomInt(this.#random, serving.length)]!;
  }
}
