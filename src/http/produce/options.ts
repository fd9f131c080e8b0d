/** What the headers of a produce request ask for beside its records. Throws ProblemError. */
import { HTTP_IDEMPOTENCY_KEY_CHARS_MAX } from "../../lib/limits.ts";
import { equalBytes } from "../../lib/bytes.ts";
import type { RecordInput } from "../port.ts";
import { badRequest } from "../problem.ts";
import { parseCount } from "../query.ts";
import type { ProduceOptions, ProducerStamp } from "../write_port.ts";

const QUOTED = /^"((?:[\x20\x21\x23-\x5b\x5d-\x7e]|\\["\\])*)"$/;
/** As many clients send it; no space, so that two joined headers are none. */
const BARE = /^[\x21\x23-\x7e]+$/;
const EPOCH_MAX = 2 ** 15 - 1;
const SEQUENCE_MAX = 2 ** 31 - 1;
const STAMP = ["producer-id", "producer-epoch", "producer-seq"] as const;

/** A structured field's string (RFC 9651), or the same without quotes. */
export function idempotencyKeyOf(text: string): string {
  const quoted = QUOTED.exec(text)?.[1]?.replace(/\\(["\\])/g, "$1");
  const key = quoted ?? (BARE.test(text) ? text : "");
  if (key !== "" && key.length <= HTTP_IDEMPOTENCY_KEY_CHARS_MAX) return key;
  throw badRequest(
    `Cannot use Idempotency-Key: not a string of 1 to ${HTTP_IDEMPOTENCY_KEY_CHARS_MAX} ASCII characters`,
  );
}

function stampOf(headers: Headers): ProducerStamp | null {
  const [id, epoch, sequence] = STAMP.map((name) => headers.get(name));
  if (id == null && epoch == null && sequence == null) return null;
  if (id == null || epoch == null || sequence == null) {
    throw badRequest("Cannot use Producer-Id, Producer-Epoch and Producer-Seq: all or none");
  }
  return {
    producerId: parseCount(id, "Producer-Id"),
    producerEpoch: parseCount(epoch, "Producer-Epoch", EPOCH_MAX),
    sequence: parseCount(sequence, "Producer-Seq", SEQUENCE_MAX),
  };
}

/** `*` asks only that the topic is there. */
function conditionOf(text: string): Pick<ProduceOptions, "nextOffset" | "mustExist"> {
  if (text === "*") return { mustExist: true };
  return { nextOffset: parseCount(text.replace(/^"(.*)"$/, "$1"), "If-Match") };
}

function refuseBoth(first: string, second: string): never {
  throw badRequest(`Cannot use ${first} and ${second} in one request`);
}

/** `partition` is that of the path, null without one. */
export function optionsOf({ headers }: Request, partition: number | null): ProduceOptions {
  const key = headers.get("idempotency-key");
  const condition = headers.get("if-match");
  const producer = stampOf(headers);
  if (producer !== null && key !== null) refuseBoth("Producer-Id", "Idempotency-Key");
  if (producer !== null && condition !== null) refuseBoth("Producer-Id", "If-Match");
  if (condition !== null && partition === null) {
    throw badRequest("Cannot use If-Match: the path names no partition");
  }
  return {
    ...(key === null ? {} : { idempotencyKey: idempotencyKeyOf(key) }),
    ...(producer === null ? {} : { producer }),
    ...(condition === null ? {} : conditionOf(condition)),
  };
}

export function isPlain(options: ProduceOptions): boolean {
  return Object.keys(options).length === 0;
}

function isBeside(a: RecordInput, b: RecordInput): boolean {
  if (a.partition !== null || b.partition !== null) return a.partition === b.partition;
  return a.key !== null && b.key !== null && equalBytes(a.key, b.key);
}

/** Numbered records are a sequence of one partition, whichever that is. */
export function checkOnePartition(
  records: readonly RecordInput[],
  { producer }: ProduceOptions,
): void {
  const first = records[0]!;
  if (producer === undefined || records.every((record) => isBeside(first, record))) return;
  throw badRequest(
    "Cannot use Producer-Id: the records are not for one partition; name it in the path, or give them one key",
  );
}
