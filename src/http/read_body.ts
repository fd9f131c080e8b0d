/**
 * Request bodies into memory, bounded node-wide and in time. Room is taken before anything is read: for
 * the declared length, or, once a body without one is no longer small, for the largest body. Whoever
 * holds room waits for none of the same kind, so uploads cannot block each other; and they are not
 * counted as produce before they are complete, so a slow one does not hold up Kafka's clients.
 */
import type { Clock } from "../env/clock.ts";
import type { CodecName, Codecs } from "../env/codecs.ts";
import { isFault } from "../lib/errors.ts";
import { GrowingOutput } from "../lib/growing_output.ts";
import {
  HTTP_BODY_BYTES_MAX,
  HTTP_BODY_STALL_MS,
  HTTP_BYTES_PER_S_MIN,
  HTTP_INFLATE_RATIO_MAX,
  HTTP_INFLATED_BODIES_BYTES_MAX,
  HTTP_LARGE_BODIES_BYTES_MAX,
  HTTP_MEDIUM_BODIES_BYTES_MAX,
  HTTP_MEDIUM_BODY_BYTES,
  HTTP_SMALL_BODIES_BYTES_MAX,
  HTTP_SMALL_BODY_BYTES,
} from "../lib/limits.ts";
import { Semaphore } from "../lib/semaphore.ts";
import { takePermits } from "./permit_wait.ts";
import { badRequest, ProblemError } from "./problem.ts";

/** The memory of all bodies of a node. */
export interface BodyRooms {
  readonly small: Semaphore;
  readonly medium: Semaphore;
  readonly large: Semaphore;
  /** What came encoded, as it is read. */
  readonly inflated: Semaphore;
  readonly clock: Clock;
  /** Without them all encodings are refused. */
  readonly codecs: Codecs | null;
}

export function createBodyRooms(clock: Clock, codecs: Codecs | null = null): BodyRooms {
  return {
    small: new Semaphore(HTTP_SMALL_BODIES_BYTES_MAX),
    medium: new Semaphore(HTTP_MEDIUM_BODIES_BYTES_MAX),
    large: new Semaphore(HTTP_LARGE_BODIES_BYTES_MAX),
    inflated: new Semaphore(HTTP_INFLATED_BODIES_BYTES_MAX),
    clock,
    codecs,
  };
}

export interface HeldBody {
  readonly bytes: Uint8Array;
  /** Gives the room back; once the body and what came of it are not looked at any more. */
  release(): void;
}

const ENCODINGS = ["gzip", "zstd"] as const;
/** The rest of such a body is not read: without it the next request cannot be found. */
const CLOSING = { connection: "close" } as const;

export function tooLarge(detail: string): ProblemError {
  return new ProblemError({ status: 413, title: "Content too large", detail });
}

function bodyTooLarge(bytesMax: number): ProblemError {
  return new ProblemError({
    status: 413,
    title: "Content too large",
    detail: `Cannot read the body: more than ${bytesMax} bytes`,
    headers: CLOSING,
  });
}

function tooSlow(): ProblemError {
  return new ProblemError({
    status: 408,
    title: "Request timeout",
    detail: "Cannot read the body: it does not arrive",
    headers: CLOSING,
  });
}

const endedEarly = (): never => {
  throw badRequest("Cannot read the body: it ended early");
};

/** What one request holds of the rooms. */
class Place {
  readonly #rooms: BodyRooms;
  readonly #request: Request;
  #room: Semaphore | null = null;
  #bytes = 0;

  constructor(rooms: BodyRooms, request: Request) {
    this.#rooms = rooms;
    this.#request = request;
  }

  get bytes(): number {
    return this.#bytes;
  }

  /** Moves to the room for so many bytes. Only ever from the small one to the large one. */
  async take(bytes: number): Promise<void> {
    const { small, medium, large, clock } = this.#rooms;
    const room = bytes <= HTTP_SMALL_BODY_BYTES
      ? small
      : bytes <= HTTP_MEDIUM_BODY_BYTES
      ? medium
      : large;
    await takePermits(room, bytes, clock, this.#request);
    this.release();
    this.#room = room;
    this.#bytes = bytes;
  }

  shrink(bytes: number): void {
    this.#room?.release(this.#bytes - bytes);
    this.#bytes = bytes;
  }

  /** Once; later calls do nothing. */
  release(): void {
    this.#room?.release(this.#bytes);
    this.#room = null;
  }
}

/** Null for none. */
function encodingOf(request: Request, codecs: Codecs | null): CodecName | null {
  const encoding = (request.headers.get("content-encoding") ?? "").trim().toLowerCase();
  if (encoding === "" || encoding === "identity") return null;
  const supported = ENCODINGS.filter((name) => codecs?.supports(name) === true);
  const codec = supported.find((name) => name === encoding || `x-${name}` === encoding);
  if (codec !== undefined) return codec;
  throw new ProblemError({
    status: 415,
    title: "Unsupported media type",
    detail: `Cannot read the body: content-encoding ${encoding.slice(0, 100)} is not supported`,
    headers: { "accept-encoding": [...supported, "identity"].join(", ") },
  });
}

/** Null where the request does not say: chunks, or a request without a socket. */
function declaredLength(request: Request): number | null {
  const text = request.headers.get("content-length");
  if (text === null) return null;
  if (/^\d{1,15}$/.test(text)) return Number(text);
  throw badRequest("Cannot read the body: its content-length is not a number");
}

/** The outcome, or a problem when it takes longer. */
async function within<T>(clock: Clock, ms: number, work: Promise<T>): Promise<T> {
  return await new Promise((resolve, reject) => {
    const cancel = clock.after(ms, () => reject(tooSlow()));
    work.finally(cancel).then(resolve, reject);
  });
}

/** At once: the streams of hosts cost more than small bodies. */
async function readSmall(request: Request, clock: Clock, declared: number): Promise<Uint8Array> {
  const read = request.arrayBuffer().catch(endedEarly);
  const bytes = new Uint8Array(await within(clock, HTTP_BODY_STALL_MS, read));
  if (bytes.length > declared) longerThanDeclared();
  return bytes.length === declared ? bytes : endedEarly();
}

function longerThanDeclared(): never {
  throw badRequest("Cannot read the body: it is longer than its content-length");
}

/** Part by part; each has to come in time, and all of them at a least pace. */
class PartReader {
  readonly #reader: ReadableStreamDefaultReader<Uint8Array>;
  readonly #clock: Clock;
  #length = 0;
  #waitedMs = 0;

  constructor(body: ReadableStream<Uint8Array>, clock: Clock) {
    this.#reader = body.getReader();
    this.#clock = clock;
  }

  get length(): number {
    return this.#length;
  }

  /** Null at the end. */
  async next(): Promise<Uint8Array | null> {
    const startMs = this.#clock.monotonicMs();
    const allowedMs = HTTP_BODY_STALL_MS + this.#length * 1000 / HTTP_BYTES_PER_S_MIN;
    const leftMs = Math.min(HTTP_BODY_STALL_MS, allowedMs - this.#waitedMs);
    const part = await within(this.#clock, leftMs, this.#reader.read().catch(endedEarly));
    this.#waitedMs += this.#clock.monotonicMs() - startMs;
    if (part.done) return null;
    this.#length += part.value.length;
    return part.value;
  }

  stop(): void {
    this.#reader.cancel().catch(() => {});
  }
}

/** Grows with what comes: memory for 32 MiB costs milliseconds, and a client that only says so nothing. */
async function readDeclared(parts: PartReader, declared: number): Promise<Uint8Array> {
  const gathered = new GrowingOutput(declared, 0);
  for (let part = await parts.next(); part !== null; part = await parts.next()) {
    if (parts.length > declared) longerThanDeclared();
    gathered.append(part);
  }
  return gathered.length === declared ? gathered.result() : endedEarly();
}

async function readUndeclared(
  parts: PartReader,
  place: Place,
  bytesMax: number,
): Promise<Uint8Array> {
  // Not a list of parts: a body that comes byte by byte would be millions of them.
  const gathered = new GrowingOutput(bytesMax, 0);
  for (let part = await parts.next(); part !== null; part = await parts.next()) {
    if (parts.length > bytesMax) throw bodyTooLarge(bytesMax);
    if (parts.length > place.bytes) await place.take(bytesMax);
    gathered.append(part);
  }
  return gathered.result().slice();
}

async function readParts(
  body: ReadableStream<Uint8Array>,
  declared: number | null,
  place: Place,
  bytesMax: number,
  clock: Clock,
): Promise<Uint8Array> {
  const parts = new PartReader(body, clock);
  try {
    return declared === null
      ? await readUndeclared(parts, place, bytesMax)
      : await readDeclared(parts, declared);
  } catch (error) {
    parts.stop();
    throw error;
  }
}

/**
 * What was encoded, in memory that is taken for the largest that it may be. Those who hold it wait for no room of
 * a body, and the body is given back at once. It is decoded in one step, so that a bomb costs what it may, no more.
 */
async function inflate(
  body: HeldBody,
  codec: CodecName,
  request: Request,
  { inflated, clock, codecs }: BodyRooms,
  bytesMax: number,
): Promise<HeldBody> {
  const grown = Math.max(HTTP_MEDIUM_BODY_BYTES, body.bytes.length * HTTP_INFLATE_RATIO_MAX);
  const limit = Math.min(bytesMax, grown);
  try {
    await takePermits(inflated, limit, clock, request);
  } catch (error) {
    body.release();
    throw error;
  }
  let held = limit;
  const release = (): void => {
    inflated.release(held);
    held = 0;
  };
  try {
    const bytes = codecs!.decompress(codec, body.bytes, limit);
    inflated.release(limit - bytes.length);
    held = bytes.length;
    return { bytes, release };
  } catch (error) {
    release();
    if (!isFault(error, "corrupt")) throw error;
    throw badRequest(`Cannot read the body: no ${codec}, or more than ${limit} bytes in it`);
  } finally {
    body.release();
  }
}

/** The whole body, never more than the limit. Throws ProblemError; then nothing is held. */
export async function readBody(
  request: Request,
  rooms: BodyRooms,
  bytesMax = HTTP_BODY_BYTES_MAX,
): Promise<HeldBody> {
  const codec = encodingOf(request, rooms.codecs);
  const body = await readPlain(request, rooms, bytesMax);
  return codec === null || body.bytes.length === 0
    ? body
    : await inflate(body, codec, request, rooms, bytesMax);
}

async function readPlain(
  request: Request,
  rooms: BodyRooms,
  bytesMax: number,
): Promise<HeldBody> {
  const declared = declaredLength(request);
  if (declared !== null && declared > bytesMax) throw bodyTooLarge(bytesMax);
  if (declared === 0) return { bytes: new Uint8Array(0), release: () => {} };
  const place = new Place(rooms, request);
  try {
    await place.take(declared ?? Math.min(bytesMax, HTTP_SMALL_BODY_BYTES));
    const { clock } = rooms;
    const isSmall = declared !== null && declared <= HTTP_SMALL_BODY_BYTES;
    const bytes = isSmall
      ? await readSmall(request, clock, declared)
      : request.body === null
      ? new Uint8Array(0)
      : await readParts(request.body, declared, place, bytesMax, clock);
    place.shrink(bytes.length);
    return { bytes, release: () => place.release() };
  } catch (error) {
    place.release();
    throw error;
  }
}
