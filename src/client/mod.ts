/**
 * Skerry's client over HTTP: fetch alone, no dependency, for Workers, Deno, Bun, Node and browsers.
 *
 * ```ts
 * import { createClient } from "skerry/client";
 *
 * const client = createClient({ url: "http://127.0.0.1:8080" });
 * const orders = client.topic("orders");
 * await orders.produce({ key: "4711", value: { state: "paid" } });
 * for await (const { key, value } of orders.consume()) {
 *   console.log(key, value);
 *   break;
 * }
 * ```
 *
 * @module
 */
import type { ProducerOptions } from "./batcher.ts";
import { Group, type GroupOptions } from "./group.ts";
import { type Fetch, systemHost } from "./host.ts";
import { Http, type HttpOptions } from "./http.ts";
import { Topic } from "./topic.ts";
import { Topics } from "./topics.ts";

export type { ProducerOptions } from "./batcher.ts";
export { type KafkaError, type Problem, SkerryError } from "./errors.ts";
export type { ConsumedRecord, ConsumeOptions, Skipped } from "./follow.ts";
export type {
  AckOptions,
  Batch,
  Group,
  GroupConsumeOptions,
  GroupOptions,
  LeasedRecord,
  LostRange,
  Place,
  PollOptions,
} from "./group.ts";
export type { Fetch } from "./host.ts";
export type { HeaderMap, HttpOptions } from "./http.ts";
export type { Outcome, ProducedRecord } from "./produce.ts";
export type { Data, NewRecord, StoredRecord } from "./records.ts";
export { ProduceError, type ProduceOptions, type Topic } from "./topic.ts";
export type { NewTopic, TopicInfo, Topics } from "./topics.ts";

export interface ClientOptions extends HttpOptions {
  /** Instead of the one that is there. */
  readonly fetch?: Fetch;
}

export interface Client {
  readonly topics: Topics;
  /** Keep what it gives: the records of its calls share requests. In Workers, make one for each request. */
  topic(name: string, options?: ProducerOptions): Topic;
  group(name: string, options?: GroupOptions): Group;
}

/** Makes no request by itself. Throws TypeError for a URL that is none. */
export function createClient(options: ClientOptions): Client {
  const http = new Http(systemHost(options.fetch), options);
  return {
    topics: new Topics(http),
    topic: (name, producer = {}) => new Topic(http, name, producer),
    group: (name, group = {}) => new Group(http, name, group),
  };
}
