/**
 * The life of a node: one incarnation after the other. Another process with its node id ends it for good; a
 * recovery by another node ends only the incarnation. Then everything above the store is closed and forgotten,
 * what the log holds is recovered and a new incarnation registers, while ports stay open and clients retry.
 */
import { settlesWithin, sleep } from "../env/clock.ts";
import type { Env } from "../env/env.ts";
import { FaultError, isFault, messageOf } from "../lib/errors.ts";
import { CLOSE_GRACE_MS } from "../lib/limits.ts";
import type { Broker } from "../broker/broker.ts";
import type { BrokerConfig } from "../broker/broker_config.ts";
import type { CoordinatorBounds } from "../broker/group/coordinator.ts";
import type { Permits } from "../broker/handler.ts";
import { type Auditor, createAuditor } from "../controller/auditor.ts";
import type { Requester } from "../controller/command.ts";
import { createCollector } from "../controller/collector.ts";
import type { HttpHost } from "../http/sockets/socket_port.ts";
import { backoffMs } from "../object/backoff.ts";
import type { NotUploaded } from "../storage/storage.ts";
import { auditOf } from "./audit_settings.ts";
import type { HealthPart } from "./health.ts";
import type { Fetch } from "./http_front.ts";
import {
  asFault,
  type Incarnation,
  type IncarnationOptions,
  startIncarnation,
} from "./incarnation.ts";
import { createKafkaSide, type KafkaSide } from "./kafka_side.ts";
import { Opened } from "./opened.ts";
import { retentionOf } from "./storage_settings.ts";
import type { StoreWaitOptions } from "./store_wait.ts";

export interface LifeOptions
  extends Omit<IncarnationOptions, "again" | "storeWait" | "onHealth" | "onFatal"> {
  readonly env: Env;
  readonly config: BrokerConfig;
  readonly permits: Permits;
  readonly groupBounds?: CoordinatorBounds;
  readonly storeWait: StoreWaitOptions;
  /** The HTTP app above a broker. */
  readonly httpOf: (kafkaSide: KafkaSide) => HttpSide;
  readonly onHealth: (part: Exclude<HealthPart, "metadata">, problem: string | null) => void;
  /** The node can never work again. */
  readonly fail: (fault: FaultError) => void;
}

/** What answers HTTP requests above one incarnation. */
export interface HttpSide {
  readonly fetch: Fetch;
  /** Ends streams and waits; may be called again. */
  close(): void;
}

/** An incarnation with all that stands on it. */
interface Current {
  readonly incarnation: Incarnation;
  readonly kafkaSide: KafkaSide;
  readonly http: HttpSide;
  readonly ended: Promise<FaultError>;
  close(): Promise<void>;
}

const NOTHING: NotUploaded = { durableBytes: 0, slots: 0, unacknowledgedBytes: 0 };

export class NodeLife {
  readonly #options: LifeOptions;
  readonly #stop = new AbortController();
  /** While one ends and the next begins, the old one goes on refusing. */
  #current: Current;
  #restarting: Promise<void> = Promise.resolve();
  /** The newest incarnation is closed, and the next is not there yet. */
  #isBetween = false;
  /** Answers by the incarnation of the moment. */
  readonly broker: Broker = {
    handle: (frame, session, hooks) => this.#current.kafkaSide.broker.handle(frame, session, hooks),
  };

  private constructor(options: LifeOptions, first: Current) {
    this.#options = options;
    this.#current = first;
    this.#follow(first);
  }

  /** Throws FaultError `config` when the store fails for too long, `fenced`, `data-loss`. */
  static async start(options: LifeOptions): Promise<NodeLife> {
    return new NodeLife(
      options,
      await begin(options, { again: false, storeWait: options.storeWait }),
    );
  }

  fetch(request: Request, host?: HttpHost): Promise<Response> {
    return this.#current.http.fetch(request, host);
  }

  get requester(): Requester {
    return this.#current.incarnation.requester;
  }

  problem(): string | null {
    return this.#current.incarnation.problem();
  }

  /** Nothing begins any more, streams end, and groups let their held-back answers go. */
  quiesce(): void {
    this.#stop.abort();
    this.#current.http.close();
    this.#current.kafkaSide.closeGroups();
  }

  /** Ends all waiting for the store. */
  abandon(fault: FaultError): NotUploaded {
    return this.#isBetween ? NOTHING : this.#current.incarnation.abandon(fault);
  }

  async close(): Promise<void> {
    this.quiesce();
    await this.#restarting;
    if (!this.#isBetween) await this.#current.close();
  }

  #follow(current: Current): void {
    this.#current = current;
    void current.ended.then((fault) => {
      if (this.#stop.signal.aborted) return;
      if (fault.code !== "fenced") return this.#options.fail(fault);
      this.#restarting = this.#goOn(current, fault).catch((error: unknown) => {
        if (!this.#stop.signal.aborted) this.#options.fail(asFault(error));
      });
    });
  }

  async #goOn(old: Current, fault: FaultError): Promise<void> {
    const { env, onHealth } = this.#options;
    onHealth("node", fault.message);
    if (await this.#isReplaced()) return this.#options.fail(fault);
    env.log.log("warn", "node-recovers", { reason: fault.message });
    this.#isBetween = true;
    old.incarnation.abandon(fault);
    if (!await settlesWithin(env.clock, old.close(), CLOSE_GRACE_MS)) {
      env.log.log("warn", "close-goes-on", { reason: "the store does not answer" });
    }
    const next = await this.#beginAgain();
    if (next === null) return;
    this.#isBetween = false;
    this.#follow(next);
    onHealth("node", null);
    const { epoch } = next.incarnation.requester;
    env.log.log("info", "node-goes-on", { epoch });
  }

  /** Null when the node closes, or is replaced. A store that is away is waited for, however long it takes. */
  async #beginAgain(): Promise<Current | null> {
    const { env, storeWait, fail } = this.#options;
    const { signal } = this.#stop;
    const patient = { ...storeWait, limitMs: null, signal };
    for (let attempt = 1; !signal.aborted; attempt++) {
      try {
        return await begin(this.#options, { again: true, storeWait: patient });
      } catch (error) {
        if (!isFault(error)) throw error;
        const isFenced = error.code === "fenced";
        if (!isFenced && !error.retriable) throw error;
        if (isFenced && await this.#isReplaced()) {
          fail(error);
          return null;
        }
        env.log.log("warn", "node-recovery-repeated", { error: messageOf(error) });
      }
      await sleep(env.clock, backoffMs(attempt, env.random), signal);
    }
    return null;
  }

  /** Whether another process holds our node id, by the end of the metadata log. */
  async #isReplaced(): Promise<boolean> {
    const { metadata, nodeId, incarnation, env } = this.#options;
    const { signal } = this.#stop;
    for (let attempt = 1;; attempt++) {
      // What the replica knows is final: nobody is registered again by others.
      if (metadata.view().nodes.get(nodeId)?.incarnation !== incarnation) return true;
      try {
        return (await metadata.fresh()).nodes.get(nodeId)?.incarnation !== incarnation;
      } catch (error) {
        if (!isFault(error) || !error.retriable || signal.aborted) throw error;
      }
      await sleep(env.clock, backoffMs(attempt, env.random), signal);
    }
  }
}

function startAuditor(
  { store, env, clusterId, nodeId, metadata, config }: LifeOptions,
): Auditor | null {
  const options = auditOf(config);
  if (options === null) return null;
  const { trimAgeMs } = retentionOf(config).metadata;
  const auditor = createAuditor({ store, env, clusterId, nodeId, metadata, options, trimAgeMs });
  auditor.start();
  return auditor;
}

async function begin(
  options: LifeOptions,
  how: Pick<IncarnationOptions, "again" | "storeWait">,
): Promise<Current> {
  const opened = new Opened();
  try {
    return await openAll(options, how, opened);
  } catch (error) {
    await opened.close().catch((closing: unknown) => {
      options.env.log.log("warn", "close-failed", { error: messageOf(closing) });
    });
    throw error;
  }
}

async function openAll(
  options: LifeOptions,
  how: Pick<IncarnationOptions, "again" | "storeWait">,
  opened: Opened,
): Promise<Current> {
  const { env, store, clusterId, metadata, nodeId, config, permits } = options;
  let end: (fault: FaultError) => void = () => {};
  const ended = new Promise<FaultError>((resolve) => void (end = resolve));
  let isClosed = false;
  const incarnation = await startIncarnation({
    ...options,
    ...how,
    onHealth: (problem) => {
      if (!isClosed) options.onHealth("upload", problem);
    },
    onFatal: (fault) => end(fault),
  });
  opened.add(() => incarnation.close());
  const { requester } = incarnation;
  const collector = createCollector({
    store,
    env,
    clusterId,
    metadata,
    requester: () => requester,
    ...retentionOf(config).collector,
  });
  opened.add(() => collector.close());
  const auditor = startAuditor(options);
  opened.add(() => auditor?.close());
  const kafkaSide = createKafkaSide({
    env,
    nodeId,
    clusterId,
    config,
    metadata,
    incarnation,
    permits,
    opened,
    ...(options.groupBounds === undefined ? {} : { groupBounds: options.groupBounds }),
  });
  const http = options.httpOf(kafkaSide);
  opened.add(() => http.close());
  return {
    incarnation,
    kafkaSide,
    ended,
    http,
    close() {
      isClosed = true;
      options.onHealth("upload", null);
      return opened.close();
    },
  };
}
