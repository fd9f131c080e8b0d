/** GET with live=sse: a live stream in the dialect's events, until it is closed or has lasted long enough. */
import { STREAM_EVENTS_MS } from "../../../lib/limits.ts";
import type { StreamFormat } from "../../live/formats.ts";
import { LiveBody } from "../../live/live_body.ts";
import { LiveReader } from "../../live/live_reader.ts";
import { expectRoom } from "../../live/stream.ts";
import type { Gateway, RecordOutput } from "../../port.ts";
import type { ReadGateway } from "../../read_port.ts";
import { badRequest, ProblemError } from "../../problem.ts";
import { STATUS_GONE } from "../../read/page.ts";
import { kindOf } from "./content.ts";
import { recordEvents } from "./event_format.ts";
import { currentCursor, cursorAfter, offsetText, type StreamStart } from "./offsets.ts";
import type { Found, StreamsServices } from "./place.ts";
import type { StreamTail } from "./port.ts";

interface Asked extends Found {
  readonly request: Request;
  readonly start: StreamStart;
  readonly cursor: string | null;
}

class EventFormat implements StreamFormat {
  readonly contentType = "text/event-stream";
  readonly #services: StreamsServices;
  readonly #asked: Asked;
  readonly #firstCursor: number;
  readonly #sinceMs: number;
  #isOver = false;

  constructor(services: StreamsServices, asked: Asked) {
    this.#services = services;
    this.#asked = asked;
    this.#firstCursor = cursorAfter(asked.cursor, services.env);
    this.#sinceMs = services.env.clock.monotonicMs();
  }

  /** Readers of a cache part and meet again, so no stream lasts for ever. */
  isOver(): boolean {
    return this.#isOver ||
      this.#services.env.clock.monotonicMs() - this.#sinceMs >= STREAM_EVENTS_MS;
  }

  /** At the end of the stream the reader hears so; before it, records follow. */
  open(cursor: string): string {
    const control = this.#control(cursor);
    return control.includes('"upToDate"') ? control : ":\n";
  }

  record(record: RecordOutput, _partition: number, cursor: string): Iterable<string> {
    return recordEvents(
      record,
      kindOf(this.#asked.stream.contentType),
      () => this.#control(cursor),
    );
  }

  cursor(cursor: string): string {
    return this.#control(cursor);
  }

  /** Whoever listens uses the stream. */
  get heartbeat(): string {
    this.#services.gateway.touchStream(this.#asked.topicId);
    return ":\n";
  }

  /** The dialect has no words for these: the reader comes back, and gets them as the status of its request. */
  gap(): string {
    return this.#cut();
  }
  problem(): string {
    return this.#cut();
  }
  end(): string {
    return "";
  }

  #cut(): string {
    this.#isOver = true;
    return "";
  }

  #control(streamNextOffset: string): string {
    const { gateway, env } = this.#services;
    const tail = gateway.peekTail(this.#asked);
    const next = Number.parseInt(streamNextOffset, 10);
    const streamClosed = tail !== null && tail.closedAt !== null && next >= tail.closedAt;
    const upToDate = tail !== null && next >= tail.next;
    this.#isOver ||= streamClosed;
    const cursor = Math.max(this.#firstCursor, currentCursor(env.clock));
    const data = {
      streamNextOffset,
      ...(streamClosed ? { streamClosed } : { streamCursor: String(cursor) }),
      ...(upToDate ? { upToDate } : {}),
    };
    return `event: control\ndata:${JSON.stringify(data)}\n\n`;
  }
}

function startIn({ earliest, next }: StreamTail, start: StreamStart): number {
  if (start === "earliest") return earliest;
  if (start === "latest") return next;
  if (start < earliest) {
    const detail = `Cannot read: the stream begins at ${earliest} by now`;
    throw new ProblemError({ status: STATUS_GONE, title: "Gone", detail });
  }
  if (start > next) throw badRequest("Cannot read: the offset is behind the end of the stream");
  return start;
}

/** The topic of a fork, in the offsets of the stream. */
function forkGateway(gateway: Gateway, place: Found): ReadGateway {
  return {
    read: (_topic, _partition, query) => gateway.readStream(place, query),
    peekEnd: () => gateway.peekTail(place)?.next ?? null,
    readBatches: gateway.readBatches.bind(gateway),
    findTopic: gateway.findTopic.bind(gateway),
    bounds: gateway.bounds.bind(gateway),
    watch: gateway.watch.bind(gateway),
  };
}

export function openEvents(services: StreamsServices, asked: Asked, tail: StreamTail): Response {
  const { gateway, env, streams } = services;
  const { stream, topicId, partition, request } = asked;
  expectRoom(streams);
  const gone = new AbortController();
  const positions = new Map([[partition, startIn(tail, asked.start)]]);
  const reader = new LiveReader({
    gateway: stream.fork === null ? gateway : forkGateway(gateway, asked),
    env,
    streams,
    start: { topic: stream, partitions: [partition], positions, turn: 0 },
    choose: () => [partition],
    isolation: "committed",
    // Reads of forks are not shared: others share those of their own records, at other offsets.
    filter: stream.fork === null ? null : () => true,
    signal: gone.signal,
    cursorOf: (at) => offsetText(topicId, at.get(partition)!),
  });
  const format = new EventFormat(services, asked);
  const body = new LiveBody({ env, streams, reader, format, gone, request });
  return new Response(body.open(), {
    headers: {
      "content-type": format.contentType,
      "cache-control": "no-cache, no-transform",
      "x-accel-buffering": "no",
      ...(kindOf(stream.contentType) === "binary" ? { "stream-sse-data-encoding": "base64" } : {}),
    },
  });
}
