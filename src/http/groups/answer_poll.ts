/** The answer of a poll: records with their topics, how often they were delivered, and what acknowledges them. */
import { deliveriesOf } from "../../broker/group/lease/window.ts";
import { answerOf, chunksOf } from "../answer.ts";
import { rawPath } from "../read/page.ts";
import { recordJson, type Shown } from "../record_json.ts";
import type { HttpServices } from "../services.ts";
import { encodeAck } from "./ack_token.ts";
import type { LostRange } from "./acknowledge.ts";
import type { PollBody } from "./bodies.ts";
import type { Delivered, Look } from "./look.ts";

export interface PollAnswer {
  readonly services: HttpServices;
  readonly request: Request;
  readonly group: string;
  readonly body: PollBody;
  readonly caller: { readonly member: string; readonly holder: number };
  readonly found: Look;
  readonly lost: readonly LostRange[];
}

/** What a record of an answer has beside that of a read. */
function headOf({ at, window }: Delivered, offset: number): string {
  const deliveries = deliveriesOf(window, offset);
  const again = deliveries > 1 ? `"deliveryCount":${deliveries},` : "";
  return `{"topic":${JSON.stringify(at.topic)},${again}`;
}

/** One that JSON is too small for is told of, and acknowledged like any other. */
function oversizedJson(delivered: Delivered, offset: number, bytes: number): string {
  const { topic, partition } = delivered.at;
  const raw = rawPath(topic, partition, offset);
  return `${headOf(delivered, offset)}"partition":${partition},"offset":${offset},` +
    `"omitted":${bytes},"raw":${JSON.stringify(raw)}}`;
}

function* recordsOf(delivered: readonly Delivered[], shown: Shown): Generator<string, void> {
  let separator = "";
  for (const one of delivered) {
    const { at, records, oversized } = one;
    for (const record of records) {
      yield separator + headOf(one, record.offset);
      let isFirst = true;
      for (const piece of recordJson(record, at.partition, shown)) {
        yield isFirst ? piece.slice(1) : piece;
        isFirst = false;
      }
      separator = ",";
    }
    if (oversized === null || records.length > 0) continue;
    yield separator + oversizedJson(one, oversized.offset, oversized.bytes);
    separator = ",";
  }
}

function count({ services: { env } }: PollAnswer, delivered: readonly Delivered[]): void {
  for (const { records, window } of delivered) {
    const again = records.filter(({ offset }) => deliveriesOf(window, offset) > 1).length;
    env.metrics.count(
      "skerry_http_group_records_total",
      { delivery: "first" },
      records.length - again,
    );
    env.metrics.count("skerry_http_group_records_total", { delivery: "again" }, again);
  }
}

export function answerPoll(answer: PollAnswer): Response {
  const { services, request, group, body, caller, found, lost } = answer;
  const { delivered } = found;
  count(answer, delivered);
  const ranges = delivered.map(({ at: { topic, partition }, range }) => ({
    topic,
    partition,
    ...range,
  }));
  const isLeased = ranges.length > 0 && !body.autoCommit;
  const ack = isLeased ? encodeAck(group, { holder: caller.holder, ranges }) : null;
  function* pieces(): Generator<string, void> {
    yield `{"member":${JSON.stringify(caller.member)},"ack":${JSON.stringify(ack)},`;
    if (lost.length > 0) yield `"lost":${JSON.stringify(lost)},`;
    yield '"records":[';
    yield* recordsOf(delivered, { encoding: body.encoding, isInLine: false });
    yield "]}";
  }
  return answerOf(chunksOf(pieces()), {
    request,
    clock: services.env.clock,
    headers: { "content-type": "application/json", "cache-control": "no-store" },
    release: found.release,
  });
}
