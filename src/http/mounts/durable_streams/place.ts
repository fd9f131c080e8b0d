/** The stream that a path names: a partition of a topic, or the only one. */
import type { Env } from "../../../env/env.ts";
import type { Semaphore } from "../../../lib/semaphore.ts";
import type { LiveStreams } from "../../live/live_streams.ts";
import type { Gateway } from "../../port.ts";
import { badRequest, ProblemError } from "../../problem.ts";
import { parseCount } from "../../query.ts";
import type { BodyRooms } from "../../read_body.ts";
import { notFound } from "./headers.ts";
import type { StreamPlace, StreamTopic } from "./port.ts";

export interface StreamsServices {
  readonly gateway: Gateway;
  readonly env: Env;
  readonly rooms: BodyRooms;
  readonly producePermits: Semaphore;
  readonly streams: LiveStreams;
}

/** As it stands in a path. */
export interface Named {
  readonly topic: string;
  readonly partition: string | null;
}

export interface Found extends StreamPlace {
  readonly stream: StreamTopic;
}

export function findPlace(gateway: Gateway, { topic, partition: text }: Named): Found {
  const partition = text === null ? 0 : parseCount(text, "partition");
  const stream = gateway.findStream(topic);
  if (stream === null) throw notFound(`Cannot find stream ${topic}`);
  if (stream.isDeleted) {
    const detail = `Cannot use stream ${topic}: it was deleted, and is there for its forks only`;
    throw new ProblemError({ status: 410, title: "Gone", detail });
  }
  if (text === null && stream.partitions > 1) {
    throw badRequest(
      `Cannot use ${topic} as a stream: name one of its ${stream.partitions} partitions`,
    );
  }
  if (partition >= stream.partitions) {
    throw notFound(`Cannot find partition ${partition} of ${topic}: it has ${stream.partitions}`);
  }
  return { stream, topicId: stream.topicId, partition };
}
