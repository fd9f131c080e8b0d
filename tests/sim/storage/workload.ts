/**
 * What is done to streams, one operation at a time and without waiting: appends, reads of one's own and of other
 * nodes' streams, trims, closes, opens elsewhere, creation and deletion. Each answer goes to the model.
 */
import type { State } from "../../../src/controller/state.ts";
import { type Random, randomInt } from "../../../src/env/random.ts";
import { type StreamEpoch, streamEpoch, type StreamId } from "../../../src/lib/brand.ts";
import { FaultError, isFault, messageOf } from "../../../src/lib/errors.ts";
import { ReadLease } from "../../../src/lib/read_lease.ts";
import type { Stream } from "../../../src/stream/stream.ts";
import { chance, pick, type World } from "../world.ts";
import type { Fleet } from "./fleet.ts";
import { StreamModel } from "./model.ts";
import type { Serving, StorageNode } from "./node.ts";
import type { Sabotage } from "./sabotage.ts";
import { keyOf, payloadOf } from "./payload.ts";

export interface Context {
  readonly world: World;
  readonly fleet: Fleet;
  readonly sabotage: Sabotage;
  readonly state: () => State;
  readonly streams: Map<StreamId, StreamModel>;
  /** Whether a payload lies in the store. */
  readonly isDurable: (key: string) => boolean;
}

/** Refusals that a guess of the harness earns: the stream is held by somebody. */
const GUESSED_WRONG = /not-closed/;

/** What a node may answer at any time: it lost its role, it has no room, the store is away. */
function isLegal(error: unknown): boolean {
  if (!isFault(error)) return GUESSED_WRONG.test(messageOf(error));
  return error.retriable || error.code === "fenced" || error.code === "closed";
}

export class Workload {
  readonly #context: Context;
  readonly #random: Random;
  readonly #busy = new Set<Stream>();
  readonly #opening = new Map<StorageNode, Set<StreamId>>();
  #payloads = 0;
  acknowledged = 0;
  reads = 0;
  coldReads = 0;
  foreignReads = 0;
  moves = 0;

  constructor(context: Context) {
    this.#context = context;
    this.#random = context.world.random("workload");
  }

  /** Runs it to its end, however it ends; what is illegal is a violation. */
  async #try(what: string, work: () => Promise<void>): Promise<boolean> {
    const { world } = this.#context;
    try {
      await work();
      return true;
    } catch (error) {
      const text = messageOf(error);
      world.note(`${what} fails: ${text}`);
      if (!isLegal(error)) {
        const where = error instanceof FaultError ? error.code : (error as Error).stack ?? "";
        world.violated(`${what} fails: ${text} (${where})`);
      }
      return false;
    }
  }

  /** Nothing of what live nodes hold is being closed or trimmed. */
  get isIdle(): boolean {
    return this.#context.fleet.serving().every(({ serving }) =>
      [...serving!.held.values()].every((stream) => !this.#busy.has(stream))
    );
  }

  #live(): StreamModel[] {
    return [...this.#context.streams.values()].filter(({ deleted }) => !deleted);
  }

  // --- life of a stream -----------------------------------------------------------------------

  async create(node: StorageNode): Promise<void> {
    const { world, streams } = this.#context;
    const serving = node.serving!;
    await this.#try(`${node.process.name} create`, async () => {
      const stream = await serving.incarnation.streams.create(streamEpoch(0));
      const model = new StreamModel(world, stream.streamId);
      streams.set(stream.streamId, model);
      this.#hold(serving, stream, model);
      world.note(`${node.process.name} created stream ${stream.streamId}`);
    });
  }

  #hold(serving: Serving, stream: Stream, model: StreamModel): void {
    model.opened(stream.epoch, stream.startOffset, stream.confirmOffset);
    const broken = this.#context.sabotage.stream?.(stream, serving.managers);
    serving.held.set(stream.streamId, broken ?? stream);
  }

  /** Where the metadata says it is held, else anywhere; a guess may be wrong. */
  async openSome(): Promise<void> {
    const { fleet } = this.#context;
    const isHeld = ({ id }: StreamModel) =>
      fleet.serving().some(({ serving }) => serving!.held.has(id));
    const wanting = this.#live().filter((model) => !isHeld(model) || chance(this.#random, 0.05));
    if (wanting.length === 0) return;
    const model = pick(this.#random, wanting);
    const node = this.#opener(model) ?? fleet.pickServing();
    if (node !== null) await this.open(node, model);
  }

  #opener({ id }: StreamModel): StorageNode | null {
    const row = this.#context.state().streams.get(id);
    if (row?.open !== true) return null;
    return this.#context.fleet.serving().find(({ serving }) => {
      const { nodeId, epoch } = serving!.incarnation.requester;
      return nodeId === row.owner.nodeId && epoch === row.owner.epoch;
    }) ?? null;
  }

  async open(node: StorageNode, model: StreamModel): Promise<void> {
    const { world } = this.#context;
    const { id } = model;
    const serving = node.serving!;
    const opening = this.#opening.get(node) ?? new Set();
    this.#opening.set(node, opening);
    if (serving.held.has(id) || opening.has(id)) return;
    const epoch = this.#epochFor(node, id);
    if (epoch === null) return;
    opening.add(id);
    const wasDeleted = model.deleted;
    const what = `${node.process.name} open ${id} with epoch ${epoch}`;
    await this.#try(what, async () => {
      try {
        const stream = await serving.incarnation.streams.open(id, epoch);
        world.note(`${what}: [${stream.startOffset}, ${stream.confirmOffset})`);
        if (node.serving === serving) {
          if (wasDeleted) world.violated(`stream ${id} is opened after its deletion`);
          this.#hold(serving, stream, model);
          this.moves++;
        }
      } catch (error) {
        const isGone = isFault(error, "closed") && messageOf(error).includes("deleted");
        if (!isGone) throw error;
        if (!model.deleteAsked) world.violated(`I12: stream ${id} is gone, nobody deleted it`);
        model.deleted = true;
      }
    });
    opening.delete(id);
  }

  /** The next one, as the log of partitions would assign it; the same again for whoever holds it. */
  #epochFor(node: StorageNode, id: StreamId): StreamEpoch | null {
    const row = this.#context.state().streams.get(id);
    if (row === undefined) return this.#context.streams.has(id) ? streamEpoch(1_000) : null;
    const { nodeId, epoch } = node.serving!.incarnation.requester;
    const isOwn = row.open && row.owner.nodeId === nodeId && row.owner.epoch === epoch;
    return isOwn || chance(this.#random, 0.03) ? row.epoch : streamEpoch(row.epoch + 1);
  }

  async close(node: StorageNode, stream: Stream): Promise<void> {
    const serving = node.serving!;
    const { streamId } = stream;
    if (this.#busy.has(stream)) return;
    this.#busy.add(stream);
    const what = `${node.process.name} close ${streamId}`;
    while (node.serving === serving && serving.held.get(streamId) === stream) {
      const done = await this.#try(what, async () => {
        await stream.close();
        this.#context.world.note(`${what}: at ${stream.confirmOffset}`);
        if (serving.held.get(streamId) === stream) serving.held.delete(streamId);
      });
      if (done) break;
      await this.#context.world.sleep(1_000);
    }
    this.#busy.delete(stream);
  }

  async deleteSome(): Promise<void> {
    const node = this.#context.fleet.pickServing();
    const live = this.#live();
    if (node === null || live.length < 2) return;
    const model = pick(this.#random, live);
    if (this.#context.state().streams.get(model.id)?.open !== false) return;
    await this.#try(`${node.process.name} delete ${model.id}`, async () => {
      model.deleteAsked = true;
      await node.serving!.incarnation.streams.delete(model.id);
      model.deleted = true;
      this.#context.world.note(`${node.process.name} deleted ${model.id}`);
    });
  }

  // --- data -----------------------------------------------------------------------------------

  /** True once it is acknowledged; false when it was refused or lost. */
  async append(node: StorageNode, stream: Stream): Promise<boolean> {
    const { world, streams } = this.#context;
    const serving = node.serving!;
    const model = streams.get(stream.streamId)!;
    const count = 1 + randomInt(this.#random, 3);
    const base = stream.nextOffset;
    const by = node.process.name;
    const filler = "x".repeat(randomInt(this.#random, chance(this.#random, 0.1) ? 600 : 40));
    const text = `${stream.streamId}:${base}:${++this.#payloads}:${filler}`;
    const { epoch } = stream;
    const payload = payloadOf({ text, base, count, epoch });
    const key = keyOf(payload);
    const attempt = { text, key, base, count, epoch, by };
    return await this.#try(`${by} append ${model.id} at ${base}`, async () => {
      const { durable } = stream.append(count, payload);
      model.attempt(attempt);
      const number = ++serving.appended;
      await durable;
      if (!this.#context.isDurable(key)) {
        world.violated(`I6: ${by} acknowledges ${text}, which is not in the store`);
      }
      if (number <= serving.confirmed) world.violated(`${by} acknowledges out of order`);
      serving.confirmed = number;
      if (stream.confirmOffset < base + count) {
        world.violated(`${by} acknowledges stream ${model.id} past its confirm offset`);
      }
      this.acknowledged++;
      model.acknowledge(attempt);
      world.note(`${by} acknowledged ${model.id} [${base}, ${base + count})`);
    });
  }

  async readOwn(node: StorageNode, stream: Stream): Promise<void> {
    const { startOffset, confirmOffset } = stream;
    if (startOffset >= confirmOffset) return;
    const start = startOffset + randomInt(this.#random, confirmOffset - startOffset);
    const model = this.#context.streams.get(stream.streamId)!;
    const what = `${node.process.name} read ${stream.streamId} from ${start}`;
    const lease = new ReadLease();
    const cacheOnly = chance(this.#random, 0.2);
    await this.#reading(model, start, what, async () => {
      const options = { bytesMax: 1 + randomInt(this.#random, 2_000), cacheOnly, lease };
      const records = await stream.fetch(start, confirmOffset, options);
      if (records === null && cacheOnly) return;
      if (!cacheOnly) this.coldReads++;
      if (records === null || records.length === 0) throw new Error("nothing read");
      const next = model.observe(records, start, node.process.name);
      if (next <= start) this.#context.world.violated(`${what} ends at ${next}`);
    });
    lease.end();
  }

  /** A node that does not hold the stream, by its own and perhaps old metadata. */
  async readForeign(node: StorageNode): Promise<void> {
    const live = this.#live();
    if (live.length === 0) return;
    const model = pick(this.#random, live);
    const row = node.metadata?.view().streams.get(model.id);
    if (row === undefined || row.start >= row.end) return;
    const start = row.start + randomInt(this.#random, row.end - row.start);
    const { name } = node.process;
    const { reader } = node.serving!;
    await this.#reading(
      model,
      start,
      `${name} foreign read ${model.id} from ${start}`,
      async () => {
        const bytesMax = 1 + randomInt(this.#random, 2_000);
        const records = await reader.read(model.id, start, row.end, { bytesMax });
        this.foreignReads++;
        model.observe(records, start, name);
      },
    );
  }

  /** What was trimmed or deleted meanwhile may be missing; nothing else. */
  async #reading(
    model: StreamModel,
    start: number,
    what: string,
    work: () => Promise<void>,
  ): Promise<void> {
    await this.#try(what, async () => {
      try {
        await work();
        this.reads++;
      } catch (error) {
        if (model.deleteAsked || start < model.trimAsked) return;
        throw error;
      }
    });
  }

  async trim(node: StorageNode, stream: Stream): Promise<void> {
    const { startOffset, confirmOffset, streamId } = stream;
    const model = this.#context.streams.get(streamId)!;
    if (startOffset >= confirmOffset || this.#busy.has(stream)) return;
    const to = startOffset + 1 + randomInt(this.#random, confirmOffset - startOffset);
    this.#busy.add(stream);
    await this.#try(`${node.process.name} trim ${streamId} to ${to}`, async () => {
      model.trimAsked = Math.max(model.trimAsked, to);
      await stream.trim(to);
      model.trimmed = Math.max(model.trimmed, to);
      this.#context.world.note(`${node.process.name} trimmed ${streamId} to ${to}`);
    });
    this.#busy.delete(stream);
  }

  /** All of a stream, by its owner; false when it failed. */
  readWhole(node: StorageNode, stream: Stream): Promise<boolean> {
    const model = this.#context.streams.get(stream.streamId)!;
    return this.#try(`${node.process.name} read all of ${model.id}`, async () => {
      const { startOffset, confirmOffset } = stream;
      let next = startOffset;
      while (next < confirmOffset) {
        const lease = new ReadLease();
        const records = await stream.fetch(next, confirmOffset, { bytesMax: 4_000, lease });
        const after = model.observe(records ?? [], next, node.process.name);
        lease.end();
        if (after <= next) {
          return this.#context.world.violated(`I12: stream ${model.id} cannot be read at ${next}`);
        }
        next = after;
      }
      model.checkWhole(startOffset, confirmOffset);
    });
  }

  // --- one step -------------------------------------------------------------------------------

  /** Starts something; it goes on while time passes. */
  act(): void {
    const { fleet } = this.#context;
    const serving = fleet.serving();
    if (serving.length === 0) return;
    const busy = serving.filter((node) => node.serving!.held.size > 0);
    const node = pick(this.#random, busy.length > 0 ? busy : serving);
    const held = [...node.serving!.held.values()];
    const dice = this.#random.float();
    if (held.length === 0 || dice < 0.15) return void this.openSome();
    const stream = pick(this.#random, held);
    if (dice < 0.6) {
      for (let i = 1 + randomInt(this.#random, 6); i > 0; i--) void this.append(node, stream);
    } else if (dice < 0.72) void this.readOwn(node, stream);
    else if (dice < 0.82) void this.readForeign(pick(this.#random, serving));
    else if (dice < 0.88) void this.trim(node, stream);
    else if (dice < 0.96) void this.close(node, stream);
    else if (dice < 0.98) void this.deleteSome();
    else void this.create(node);
  }
}
