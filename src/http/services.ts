/** What the routes of the gateway stand on. */
import type { Env } from "../env/env.ts";
import type { Connection } from "../env/listener.ts";
import type { Semaphore } from "../lib/semaphore.ts";
import type { AdminGateway } from "./admin/admin_port.ts";
import type { Route } from "./api/route.ts";
import type { LeaseGateway } from "./groups/lease_port.ts";
import type { LiveStreams } from "./live/live_streams.ts";
import type { Gateway, NodeStatus } from "./port.ts";
import type { BodyRooms } from "./read_body.ts";
import type { Push } from "./push/push.ts";
import type { OpenSockets } from "./sockets/open_sockets.ts";
import type { Webhooks } from "./webhook/settings.ts";

export interface HttpServices {
  readonly gateway: Gateway;
  readonly admin: AdminGateway;
  readonly groups: LeaseGateway;
  readonly status: NodeStatus;
  readonly env: Env;
  /** Node-wide bytes of produce requests. */
  readonly producePermits: Semaphore;
  readonly rooms: BodyRooms;
  readonly streams: LiveStreams;
  readonly push: Push;
  readonly webhooks: Webhooks;
  /** Of the whole node, too. */
  readonly sockets: OpenSockets;
  /** Serves a Kafka connection as those of the Kafka port. */
  readonly serveKafka: (connection: Connection) => void;
  /** Origins that browsers may call from; empty sends no CORS headers at all. */
  readonly corsOrigins: readonly string[];
  /** How many streams of records may be written at once. */
  readonly recordStreams: Semaphore;
}

export type HttpRoute = Route<HttpServices>;
