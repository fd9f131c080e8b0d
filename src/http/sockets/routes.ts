/** The routes that open WebSockets. */
import * as v from "valibot";
import { described } from "../api/fields.ts";
import { route, type RouteFacts } from "../api/route.ts";
import type { HttpRoute } from "../services.ts";
import { acceptSocket } from "./accept_socket.ts";
import { openKafkaSocket } from "./kafka_socket.ts";
import { TopicSocket } from "./topic_socket.ts";

const KAFKA = "kafka";
const TOPIC = "skerry";

function socketFacts(protocol: string): Pick<RouteFacts, "headers" | "answers" | "problems"> {
  const subprotocol = described(v.string(), `${protocol}, if any is offered`);
  return {
    headers: { "Sec-WebSocket-Protocol": v.optional(subprotocol) },
    answers: { 101: { description: "the WebSocket is open" } },
    problems: [403, 426, 501],
  };
}

export const socketRoutes: readonly HttpRoute[] = [
  route("GET", "/v1/topics/{topic}/ws", {
    ...socketFacts(TOPIC),
    id: "openTopicSocket",
    tag: "sockets",
    summary: "A WebSocket that writes and reads records",
    query: null,
    handler: (services) => ({ context, path: { topic } }) =>
      acceptSocket(context, services, TOPIC, (socket) => new TopicSocket(services, topic, socket)),
  }),
  route("GET", "/v1/kafka", {
    ...socketFacts(KAFKA),
    id: "openKafkaSocket",
    tag: "sockets",
    summary: "A WebSocket that carries the Kafka protocol",
    query: null,
    handler: ({ sockets, serveKafka, corsOrigins }) => ({ context }) =>
      acceptSocket(
        context,
        { sockets, corsOrigins },
        KAFKA,
        (socket) => openKafkaSocket(socket, sockets, serveKafka),
      ),
  }),
];
