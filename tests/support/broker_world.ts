/**
 * A broker over doubles: the real rules of the metadata without a store, logs in memory, a fake clock.
 * `call` goes through bytes, as a client's request does.
 */
import assert from "node:assert/strict";
import { nodeId, type Position, position, streamId } from "../../src/lib/brand.ts";
import { concatBytes } from "../../src/lib/bytes.ts";
import { FaultError } from "../../src/lib/errors.ts";
import { Semaphore } from "../../src/lib/semaphore.ts";
import { uuidOf } from "../../src/lib/uuid.ts";
import type { Env } from "../../src/env/env.ts";
import {
  type Broker,
  createBroker,
  type Reply,
  type RequestHooks,
  type Route,
} from "../../src/broker/broker.ts";
import { type BrokerConfig, parseBrokerConfig } from "../../src/broker/broker_config.ts";
import { finalizedFeatures } from "../../src/broker/features.ts";
import type { BrokerServices, Session } from "../../src/broker/handler.ts";
import { ShareGroups } from "../../src/broker/share/share_groups.ts";
import { liveConfig } from "../../src/broker/live_config.ts";
import { createPartitions } from "../../src/broker/partitions.ts";
import { logConfigOf } from "../../src/broker/topic_config.ts";
import { createTopics } from "../../src/broker/topics.ts";
import { apply } from "../../src/controller/apply.ts";
import type { Command, Decided } from "../../src/controller/command.ts";
import { decide } from "../../src/controller/decide.ts";
import { partitionKey } from "../../src/controller/image.ts";
import type { Change, MetadataStore } from "../../src/controller/metadata_store.ts";
import { Draft, State } from "../../src/controller/state.ts";
import type { Api } from "../../src/protocol/api.ts";
import { FRAME_PREFIX_BYTES } from "../../src/protocol/frame.ts";
import { buildBatch } from "../../src/protocol/record_batch.ts";
import type { StreamClient } from "../../src/stream/stream.ts";
import { createFakeClock, type FakeClock } from "./fake_clock.ts";
import { createMemoryLog, type MemoryLog } from "./memory_log.ts";
import { testEnv } from "./test_env.ts";
import { readResponse, requestFrame } from "./wire.ts";

export const NODE = nodeId(1);
export const SESSION: Session = {
  connectionId: 1,
  principal: "User:ANONYMOUS",
  clientHost: "127.0.0.1",
  listener: { host: "127.0.0.1", port: 9092 },
  ended: new AbortController().signal,
};

export interface RuledMetadata extends MetadataStore {
  /** Thrown by every submit while set. */
  fault: FaultError | null;
  /** Awaited by every submit while set, so that others come in between. */
  gate: Promise<void> | null;
  readonly submitted: readonly Command["type"][];
}

/** The controller's own decisions, applied at once. */
export function ruledMetadata(): RuledMetadata {
  const state = new State("test-cluster");
  const listeners = new Set<(change: Change) => void>();
  const submitted: Command["type"][] = [];
  let at = 0;
  const store: RuledMetadata = {
    fault: null,
    gate: null,
    submitted,
    async submit<C extends Command>(command: C): Promise<Decided<C["type"]>> {
      submitted.push(command.type);
      if (store.gate !== null) await store.gate;
      if (store.fault !== null) throw store.fault;
      const here: Position = position(at + 1);
      const draft = new Draft(state);
      const verdict = decide(draft, command, here);
      if (!verdict.ok) return verdict;
      for (const record of verdict.records) apply(draft, record, here);
      const change = {
        topics: draft.topics.changed,
        partitions: draft.partitions.changed,
        nodes: draft.nodes.changed.size > 0,
        objects: false,
      };
      draft.fold(here);
      at += 1;
      for (const listener of listeners) listener(change);
      // The verdict's result is that of the command's own type.
      return { ok: true, at: here, ...verdict.result } as Decided<C["type"]>;
    },
    view: () => state,
    fresh: () => Promise.resolve(state),
    onChange(listener) {
      listeners.add(listener);
      return () => void listeners.delete(listener);
    },
    close: () => Promise.resolve(),
  };
  return store;
}

export interface BrokerWorld {
  readonly env: Env;
  readonly clock: FakeClock;
  readonly metadata: RuledMetadata;
  readonly services: WorldServices;
  readonly broker: Broker;
  /** Logs that were opened, by `topic-partition`; the newest of each name. */
  readonly logs: ReadonlyMap<string, MemoryLog>;
  readonly opened: number;
  /** Awaited by every opening while set. */
  gate: Promise<void> | null;
  /** Thrown by every opening while set. */
  openFault: FaultError | null;
  createTopic(name: string, partitions?: number, configs?: Record<string, string>): Promise<string>;
  /** The log of a partition, opened when needed. */
  log(name: string, partition?: number): Promise<MemoryLog>;
  batch(...values: string[]): Uint8Array;
  /** Starts a request; the promise is its raw reply. */
  send<Q, S, QIn, SOut>(
    api: Api<Q, S, QIn, SOut>,
    version: number,
    request: QIn,
    options?: Partial<RequestHooks> & { readonly clientId?: string },
  ): Promise<Reply>;
  /** Sends and decodes the answer; moves no time. */
  call<Q, S, QIn, SOut>(
    api: Api<Q, S, QIn, SOut>,
    version: number,
    request: QIn,
    options?: Partial<RequestHooks> & { readonly clientId?: string },
  ): Promise<SOut>;
}

export function brokerConfig(properties: Record<string, string> = {}): BrokerConfig {
  const parsed = parseBrokerConfig(properties);
  assert.ok(parsed.ok, parsed.ok ? "" : parsed.errors.join("; "));
  return parsed.config;
}

export function answerFrame(reply: Reply): Uint8Array {
  assert.equal(reply.kind, "answer", reply.kind === "close" ? reply.reason : "");
  return concatBytes(reply.kind === "answer" ? reply.chunks : []).subarray(FRAME_PREFIX_BYTES);
}

/** No handler under test touches streams. */
const NO_STREAMS: StreamClient = {
  create: () => Promise.reject(new Error("unexpected")),
  open: () => Promise.reject(new Error("unexpected")),
  read: () => Promise.reject(new Error("unexpected")),
  delete: () => Promise.reject(new Error("unexpected")),
  close: () => Promise.resolve(),
};

/** What a node has beside its coordinators. */
export interface WorldServices extends BrokerServices {
  readonly shareGroups: ShareGroups;
}

export async function createBrokerWorld(options: {
  readonly properties?: Record<string, string>;
  readonly routes: (services: WorldServices) => readonly Route[];
  readonly permits?: { readonly hotFetch?: number; readonly coldFetch?: number };
}): Promise<BrokerWorld> {
  const clock = createFakeClock();
  const env = testEnv({ clock });
  const metadata = ruledMetadata();
  const config = liveConfig(brokerConfig(options.properties), metadata, NODE);
  const incarnation = uuidOf(env.random.bytes(16));
  const registered = await metadata.submit({
    type: "register-node",
    nodeId: NODE,
    incarnation,
    host: "broker.test",
    port: 9092,
  });
  assert.ok(registered.ok);
  const by = { nodeId: NODE, epoch: registered.epoch };
  const logs = new Map<string, MemoryLog>();
  let opened = 0;
  let correlationId = 0;
  const partitions = createPartitions({
    env,
    nodeId: NODE,
    requester: () => by,
    metadata,
    streams: NO_STREAMS,
    sizeStored: () => Promise.resolve(null),
    configOf: (overrides) => logConfigOf(overrides, config),
    onConfigChange: (listener) => config.onChange(listener),
    async openLog({ topic, partition, leaderEpoch, metaStreamId, config: logConfig }) {
      opened += 1;
      let metaStream = metaStreamId;
      if (metaStream === null) {
        const made = await metadata.submit({ type: "create-stream", by, epoch: leaderEpoch });
        metaStream = made.ok ? made.streamId : streamId(0);
      }
      if (world.gate !== null) await world.gate;
      if (world.openFault !== null) throw world.openFault;
      const log = createMemoryLog(logConfig, leaderEpoch);
      logs.set(`${topic}-${partition}`, log);
      return { log, metaStreamId: metaStream };
    },
  });
  const own: BrokerServices = {
    env,
    nodeId: NODE,
    clusterId: "test-cluster",
    requester: () => by,
    metadata,
    partitions,
    topics: createTopics({ env, metadata, config }),
    config,
    features: finalizedFeatures(metadata),
    permits: {
      produce: new Semaphore(1 << 28),
      hotFetch: new Semaphore(options.permits?.hotFetch ?? 1 << 27),
      coldFetch: new Semaphore(options.permits?.coldFetch ?? 1 << 27),
    },
  };
  let shareGroups: ShareGroups | null = null;
  const services: WorldServices = {
    ...own,
    // Made when somebody asks: it has a timer, and tests count them.
    get shareGroups() {
      return shareGroups ??= new ShareGroups(own);
    },
  };
  const broker = createBroker(env, options.routes(services), services.features);
  const world: BrokerWorld = {
    env,
    clock,
    metadata,
    services,
    broker,
    logs,
    gate: null,
    openFault: null,
    get opened() {
      return opened;
    },
    async createTopic(name, count = 1, configs = {}) {
      const made = await services.topics.create({
        name,
        partitions: count,
        replicationFactor: 1,
        configs: Object.entries(configs),
      });
      assert.ok(made.ok, made.ok ? "" : made.message);
      return made.topic.topicId;
    },
    async log(name, partition = 0) {
      const topic = services.topics.find(name);
      assert.ok(topic !== undefined);
      assert.ok((await partitions.open(topic.topicId, partition)).ok);
      return logs.get(`${name}-${partition}`)!;
    },
    batch: (...values) =>
      buildBatch({
        records: values.map((value) => ({
          key: null,
          value: new TextEncoder().encode(value),
          headers: [],
          timestampMs: clock.nowMs(),
        })),
        codec: null,
        codecs: env.codecs,
      }),
    send(api, version, request, { clientId = "test", ...hooks } = {}) {
      correlationId += 1;
      const frame = requestFrame(api, { version, correlationId, clientId }, request);
      return broker.handle(frame.subarray(FRAME_PREFIX_BYTES), SESSION, {
        signal: new AbortController().signal,
        admitted: () => {},
        afterAnswer: () => {},
        ...hooks,
      });
    },
    async call(api, version, request, callOptions) {
      const sending = world.send(api, version, request, callOptions);
      const id = correlationId;
      return readResponse(api, { version, correlationId: id }, answerFrame(await sending));
    },
  };
  return world;
}

/** Key of a partition in the image. */
export function keyOf(world: BrokerWorld, name: string, partition = 0): string {
  return partitionKey(world.services.topics.find(name)!.topicId, partition);
}
