/**
 * The shape of every API: one handler per key, built from the services bag, bound to bytes by `bind`.
 * A handler sees decoded messages only; a broken frame never reaches it.
 */
import type { NodeId } from "../lib/brand.ts";
import type { Semaphore } from "../lib/semaphore.ts";
import type { Env } from "../env/env.ts";
import type { Api } from "../protocol/api.ts";
import type { Requester } from "../controller/command.ts";
import type { MetadataStore } from "../controller/metadata_store.ts";
import type { BrokerConfig } from "./broker_config.ts";
import type { FinalizedFeatures } from "./features.ts";
import type { Partitions } from "./partitions.ts";
import type { Topics } from "./topics.ts";

/** What is known of a connection for as long as it lives. */
export interface Session {
  readonly connectionId: number;
  /** Nobody logs in yet; access rules will read this. */
  readonly principal: "User:ANONYMOUS";
  readonly clientHost: string;
  readonly listener: { readonly host: string; readonly port: number };
  /** Fires when the connection is over. */
  readonly ended: AbortSignal;
}

export interface RequestContext {
  readonly version: number;
  /** Empty when the client sent null. */
  readonly clientId: string;
  readonly session: Session;
  /**
   * Fires when the client is gone or the broker drains: a long poll then answers with what it has.
   * Work that was admitted goes on.
   */
  readonly signal: AbortSignal;
  /**
   * Lets the connection start its next request before this one is answered; answers keep their order.
   * Without it a connection works on one request at a time, as Kafka's does. Call it only after
   * everything that must happen in order of arrival has happened; bytes of the request are gone then.
   */
  admitted(): void;
  /**
   * Runs once the answer has left, or will never leave: the place to return permits. Only what has left
   * is not looked at any more; a transport that is closing may still be at it.
   */
  afterAnswer(work: (left: boolean) => void): void;
}

/** Answered instead of a response when the protocol's only answer is to hang up. */
export const CLOSE = Symbol("close the connection");

export interface Handler<Q, S> {
  readonly api: Api<Q, S>;
  /** The advertised range. */
  readonly min: number;
  readonly max: number;
  /** Null sends nothing (acks=0). Outcomes go into the response; only faults are thrown. */
  handle(request: Q, context: RequestContext): Promise<S | null | typeof CLOSE>;
}

/** Byte permits of the whole node: what is between sockets and storage. */
export interface Permits {
  readonly produce: Semaphore;
  readonly hotFetch: Semaphore;
  readonly coldFetch: Semaphore;
}

/** What handlers are built from. */
export interface BrokerServices {
  readonly env: Env;
  readonly nodeId: NodeId;
  readonly clusterId: string;
  /** This incarnation, for commands; changes when the node registers again. */
  requester(): Requester;
  readonly metadata: MetadataStore;
  readonly partitions: Partitions;
  readonly topics: Topics;
  readonly config: BrokerConfig;
  readonly features: FinalizedFeatures;
  readonly permits: Permits;
}
