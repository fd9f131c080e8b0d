/** A topic as it grows: a live stream that begins again behind the last record whenever it is cut. */
import { isObject, noAnswer, type Problem, SkerryError, wrongAnswer } from "./errors.ts";
import { sleep } from "./host.ts";
import type { Http } from "./http.ts";
import { JsonLines } from "./lines.ts";
import { base64Of, type Data, recordOf, type StoredRecord } from "./records.ts";
import { pauseMs } from "./retry.ts";

export interface ConsumedRecord<V = Data> extends StoredRecord<V> {
  /** Where a later `consume` goes on behind this record. */
  readonly cursor: string;
}

/** Records that a reader cannot have: trimmed before they were read (`gap`), or not to be shown (`problem`). */
export interface Skipped {
  readonly reason: "gap" | "problem";
  /** What the broker says, such as `partition` and `from` and `to`, or `offset` and `raw`. */
  readonly details: Problem;
  /** Behind them; in a group they are acknowledged with the records of their poll. */
  readonly cursor: string | null;
}

export interface ConsumeOptions {
  /** Where to begin without a cursor. Default `earliest`. */
  readonly from?: "earliest" | "latest";
  /** Of the last record that was dealt with. */
  readonly cursor?: string;
  readonly partitions?: readonly number[];
  /** Records with one of these keys only. */
  readonly keys?: readonly (string | Uint8Array)[];
  /** Records with all of these headers only. */
  readonly headers?: Readonly<Record<string, string | Uint8Array>>;
  /** Read only the partitions that Kafka's default gives the `keys`. */
  readonly partitioned?: "key";
  readonly isolation?: "read_uncommitted" | "read_committed";
  /** `json`: values are parsed. */
  readonly encoding?: "auto" | "json";
  /** Ends the loop. */
  readonly signal?: AbortSignal;
  /** Silence after which the connection counts as lost; the broker says something every 15 s. Default 45 s. */
  readonly idleTimeoutMs?: number;
  /** Told of records that are passed over. Without it, they are an error. */
  readonly onSkip?: (skipped: Skipped) => void;
  /** Told of a failure after which it tries again, which it does for ever. */
  readonly onRetry?: (error: SkerryError) => void;
}

const IDLE_TIMEOUT_MS = 45_000;
/** A connection that held so long was a good one. */
const GOOD_MS = 60_000;

function markedText(data: string | Uint8Array): string {
  if (typeof data !== "string") return `base64:${base64Of(data)}`;
  // What looks like bytes is sent as such.
  return data.startsWith("base64:") ? markedText(new TextEncoder().encode(data)) : data;
}

function pathOf(path: string, options: ConsumeOptions, cursor: string | undefined): string {
  const { partitions, keys = [], headers = {} } = options;
  const { from, partitioned, isolation, encoding } = options;
  const one = { cursor, from, partitions: partitions?.join(), partitioned, isolation, encoding };
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries(one)) if (value != null) query.set(name, value);
  for (const key of keys) query.append("keys", markedText(key));
  for (const [name, value] of Object.entries(headers)) {
    query.append("header", `${name}:${markedText(value)}`);
  }
  return `${path}/stream?${query}`;
}

function endOf(reason: string): SkerryError {
  return new SkerryError(`The stream has ended: ${reason}`, {
    code: reason,
    retriable: reason === "server-stop",
  });
}

/** Those that come again by themselves are none: they only wait. */
function skippedOf({ gap, problem }: Problem, cursor: string): Skipped | null {
  if (isObject(gap)) return { reason: "gap", details: gap, cursor };
  const isPassed = isObject(problem) && typeof problem["next"] === "number";
  return isPassed ? { reason: "problem", details: problem, cursor } : null;
}

/** Tells of what is passed over, or throws it. */
export function skip(skipped: Skipped, { onSkip }: Pick<ConsumeOptions, "onSkip">): void {
  if (onSkip !== undefined) return onSkip(skipped);
  const { reason, details, cursor } = skipped;
  const what = `Records would be passed over (${reason}): ${JSON.stringify(details)}`;
  throw new SkerryError(what, { code: reason, problem: { ...details, cursor } });
}

async function open(
  http: Http,
  path: string,
  { signal, idleTimeoutMs = IDLE_TIMEOUT_MS }: ConsumeOptions,
  exchange: AbortController,
): Promise<JsonLines> {
  const ask = { method: "GET", path, headers: { accept: "application/x-ndjson" }, signal };
  return await http.open(ask, ({ body }) => {
    if (body === null) throw wrongAnswer("it has no body");
    return new JsonLines(body, http.host, idleTimeoutMs);
  }, exchange);
}

/** One connection after the other: each begins behind the last line of the one before. */
export async function* follow<V>(
  http: Http,
  path: string,
  options: ConsumeOptions,
): AsyncGenerator<ConsumedRecord<V>, void, void> {
  const { host } = http;
  const { signal, onRetry } = options;
  let { cursor } = options;
  let failures = 0;
  while (signal?.aborted !== true) {
    const exchange = new AbortController();
    const leave = () => exchange.abort();
    const openedMs = host.nowMs();
    let failure: SkerryError;
    signal?.addEventListener("abort", leave);
    try {
      const lines = await open(http, pathOf(path, options, cursor), options, exchange);
      for (let line = await lines.next(); line !== null; line = await lines.next()) {
        if (exchange.signal.aborted) return;
        if (isObject(line["end"])) throw endOf(String(line["end"]["reason"]));
        const next = line["cursor"];
        if (typeof next !== "string") continue;
        const skipped = skippedOf(line, next);
        if (skipped !== null) skip(skipped, options);
        cursor = next;
        if (!("offset" in line)) continue;
        failures = 0;
        yield recordOf<V>(line) as ConsumedRecord<V>;
      }
      throw noAnswer("network", "the stream was cut");
    } catch (error) {
      if (exchange.signal.aborted) return;
      if (!(error instanceof SkerryError) || !error.retriable) throw error;
      failure = error;
    } finally {
      signal?.removeEventListener("abort", leave);
      exchange.abort();
    }
    onRetry?.(failure);
    if (host.nowMs() - openedMs >= GOOD_MS) failures = 0;
    await sleep(host, pauseMs(host, failures++, failure), signal);
  }
}
