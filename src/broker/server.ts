/** Accepts connections, up to a bound, serves each, and drains them all when it closes. */
import { messageOf } from "../lib/errors.ts";
import { CONNECTION_DRAIN_MS, HANDLERS_END_MS, LARGE_FRAMES_BYTES_MAX } from "../lib/limits.ts";
import { Semaphore } from "../lib/semaphore.ts";
import { settlesWithin } from "../env/clock.ts";
import type { Connection } from "../env/listener.ts";
import type { Broker, Reply } from "./broker.ts";
import { serveConnection } from "./connection.ts";
import type { BrokerServices, Session } from "./handler.ts";

export interface ServerOptions {
  readonly services: Pick<BrokerServices, "env" | "config" | "permits">;
  readonly broker: Broker;
  /** Where clients came in; for sessions. */
  readonly listener: { readonly host: string; readonly port: number };
}

export interface KafkaServer {
  /** Serves a connection from a listener or from a Web stream pair; resolves when it has ended. */
  serve(connection: Connection): Promise<void>;
  readonly connections: number;
  /**
   * No new requests; answers in flight get their time, then connections are closed, and handlers that are left
   * get a little more to end. What still runs then waits for the storage below, whose end is its end.
   */
  close(): Promise<void>;
}

/** `host:port` or `[v6]:port` without its port. */
function hostOf(remote: string): string {
  return remote.replace(/:\d+$/, "").replace(/^\[|\]$/g, "");
}

/** Knows the handlers that run: one may outlive its connection. */
function follow(broker: Broker, handling: Set<Promise<Reply>>): Broker {
  return {
    handle(frame, session, hooks) {
      const reply = broker.handle(frame, session, hooks);
      handling.add(reply);
      const forget = () => void handling.delete(reply);
      reply.then(forget, forget);
      return reply;
    },
  };
}

function sessionOf(
  { remote }: Connection,
  connectionId: number,
  listener: Session["listener"],
  ended: AbortSignal,
): Session {
  return { connectionId, principal: "User:ANONYMOUS", clientHost: hostOf(remote), listener, ended };
}

export function createServer({ services, broker, listener }: ServerOptions): KafkaServer {
  const { env, config, permits } = services;
  const draining = new AbortController();
  const open = new Map<Connection, Promise<void>>();
  const handling = new Set<Promise<Reply>>();
  const followed = follow(broker, handling);
  const largeFrames = new Semaphore(LARGE_FRAMES_BYTES_MAX);
  let lastId = 0;

  async function run(connection: Connection): Promise<void> {
    lastId += 1;
    const ended = new AbortController();
    const ending = await serveConnection(connection, {
      env,
      broker: followed,
      session: sessionOf(connection, lastId, listener, ended.signal),
      requestBytesMax: config.integer("socket.request.max.bytes"),
      idleMsMax: config.integer("connections.max.idle.ms"),
      producePermits: permits.produce,
      largeFrames,
      draining: draining.signal,
    });
    ended.abort();
    open.delete(connection);
    env.metrics.count("skerry_kafka_connections_closed_total", { ending });
    env.metrics.gauge("skerry_kafka_connections", open.size);
  }

  return {
    get connections() {
      return open.size;
    },
    async serve(connection) {
      if (draining.signal.aborted || open.size >= config.integer("max.connections")) {
        env.metrics.count("skerry_kafka_connections_refused_total");
        connection.close("refused");
        return;
      }
      const served = run(connection);
      open.set(connection, served);
      env.metrics.count("skerry_kafka_connections_accepted_total");
      env.metrics.gauge("skerry_kafka_connections", open.size);
      try {
        await served;
      } catch (error) {
        open.delete(connection);
        env.log.log("error", "connection-failed", { reason: messageOf(error) });
      }
    },
    async close() {
      draining.abort();
      await settlesWithin(env.clock, Promise.all(open.values()), CONNECTION_DRAIN_MS);
      for (const connection of open.keys()) connection.close("drained");
      if (await settlesWithin(env.clock, Promise.all(handling), HANDLERS_END_MS)) return;
      env.log.log("warn", "handlers-left", { handlers: handling.size });
    },
  };
}
