/**
 * The object store on S3 and what speaks its protocol. Load this file only where it is used: the
 * client costs start-up time. Requests are sent once; `object/retrying.ts` and `create.ts` repeat them.
 */
import {
  DeleteObjectCommand,
  DeleteObjectsCommand,
  GetObjectCommand,
  HeadObjectCommand,
  ListObjectsV2Command,
  PutObjectCommand,
} from "@aws-sdk/client-s3";
import type { GetObjectCommandOutput, ListObjectsV2Output } from "@aws-sdk/client-s3";
import { isFault } from "../lib/errors.ts";
import { STORE_DELETE_BATCH_KEYS_MAX, STORE_SINGLE_DELETES_MAX } from "../lib/limits.ts";
import { Semaphore } from "../lib/semaphore.ts";
import type {
  ByteRange,
  DeleteAnswer,
  GetOptions,
  GotObject,
  ListOptions,
  ObjectInfo,
  ObjectStore,
  PutAnswer,
  PutOptions,
} from "../object/object_store.ts";
import { equalParts } from "../object/parts.ts";
import { prefixedStore } from "../object/prefixed.ts";
import { expectAbsent, expectDeleted, expectEtag, sizeByRange } from "./s3_store_answer.ts";
import type { S3Options } from "./s3_store_client.ts";
import { S3Requests } from "./s3_store_client.ts";
import { s3ErrorInfo } from "./s3_store_fault.ts";
import { listedAtMs, readAtMs } from "./s3_store_dates.ts";
import { repeat, uploadParts } from "./s3_store_multipart.ts";

export type { S3Options } from "./s3_store_client.ts";

/** Sends nothing yet; `probeStore` finds out whether the bucket is there. */
export function openS3Store(options: S3Options): ObjectStore {
  return prefixedStore(new S3Store(new S3Requests(options)), options.prefix ?? "");
}

/** Answers of servers that do not know the batch delete. */
const NO_BATCH_STATUSES: ReadonlySet<number> = new Set([400, 404, 405, 411, 501]);
/** What those that know it say with 400, too. */
const PASSING_TROUBLE: ReadonlySet<string> = new Set([
  "RequestTimeout",
  "IncompleteBody",
  "BadDigest",
  "ExpiredToken",
  "InvalidToken",
]);
const FIRST_BYTE: ByteRange = { start: 0, end: 1 };

class S3Store implements ObjectStore {
  readonly #requests: S3Requests;
  #hasBatchDelete = true;

  constructor(requests: S3Requests) {
    this.#requests = requests;
  }

  put(
    key: string,
    body: Uint8Array,
    { ifAbsent = false, signal }: PutOptions = {},
  ): Promise<PutAnswer> {
    return this.#requests.run(`put ${key}`, body.length, signal, async (attempt) => {
      const command = new PutObjectCommand({
        Bucket: this.#requests.bucket,
        Key: key,
        Body: body,
        ...(ifAbsent ? { IfNoneMatch: "*" } : {}),
      });
      const answer = await this.#requests.answer(
        attempt,
        () => this.#requests.client.send(command, { abortSignal: attempt.signal }),
      );
      const { ok: created, storeNowMs } = answer;
      if (answer.ok) expectEtag(answer.value);
      // Some stores say 304 where S3 says 412.
      if (!answer.ok && (!ifAbsent || ![304, 412].includes(answer.status))) {
        throw new Error(`unexpected status ${answer.status}`);
      }
      return { created, storeNowMs };
    });
  }

  async putParts(key: string, parts: AsyncIterable<Uint8Array>): Promise<void> {
    const source = equalParts(parts);
    try {
      await this.#putParts(key, source);
    } finally {
      // Also when the upload did not even begin: what the source holds must not stay.
      await source.return(undefined);
    }
  }

  async #putParts(key: string, source: AsyncGenerator<Uint8Array>): Promise<void> {
    const first = await source.next();
    const second = await source.next();
    if (first.done === true) return;
    if (second.done === true) return void await this.put(key, first.value);
    const head = [first.value, second.value];
    await uploadParts(
      this.#requests,
      key,
      joined(head, source),
      (size) => this.#hasSize(key, size),
    );
  }

  /** Multipart keys are unique: an object of the right size is the one that was just put together. */
  async #hasSize(key: string, size: number): Promise<boolean> {
    return (await this.head(key))?.size === size;
  }

  async get(key: string, options: GetOptions = {}): Promise<GotObject | null> {
    const { range, signal } = options;
    // The protocol has no empty range.
    if (range !== undefined && range.end <= range.start) {
      const first = await this.get(key, { ...options, range: FIRST_BYTE });
      return first === null ? null : { ...first, bytes: new Uint8Array(0) };
    }
    const got = await this.#requests.run(`get ${key}`, 0, signal, async (attempt) => {
      const command = new GetObjectCommand({
        Bucket: this.#requests.bucket,
        Key: key,
        ...(range === undefined ? {} : { Range: `bytes=${range.start}-${range.end - 1}` }),
      });
      const answer = await this.#requests.answer(
        attempt,
        () => this.#requests.client.send(command, { abortSignal: attempt.signal }),
      );
      if (!answer.ok && answer.status === 416) return "past its end";
      if (!answer.ok) return expectAbsent(answer), null;
      expectEtag(answer.value);
      attempt.expect(answer.value.ContentLength ?? 0);
      return gotObject(key, answer.value, await bodyOf(answer.value), answer.storeNowMs, range);
    });
    return got === "past its end" ? await this.#getNothing(key, signal) : got;
  }

  /** Not by HEAD, whose 404 has no body and may be anybody's; a read of one byte costs the same. */
  async head(key: string): Promise<ObjectInfo | null> {
    const found = await this.get(key, { range: FIRST_BYTE });
    if (found === null) return null;
    return { key, size: found.size, lastModifiedMs: found.lastModifiedMs };
  }

  /** Of an object that ends before the range begins, as the store has just said. */
  #getNothing(key: string, signal: AbortSignal | undefined): Promise<GotObject> {
    return this.#requests.run(`head ${key}`, 0, signal, async (attempt) => {
      const command = new HeadObjectCommand({ Bucket: this.#requests.bucket, Key: key });
      const answer = await this.#requests.answer(
        attempt,
        () => this.#requests.client.send(command, { abortSignal: attempt.signal }),
      );
      if (!answer.ok) throw new Error(`unexpected status ${answer.status}`);
      expectEtag(answer.value);
      const { ContentLength: size = 0, LastModified } = answer.value;
      const { storeNowMs } = answer;
      const lastModifiedMs = readAtMs(LastModified, storeNowMs);
      return { key, size, lastModifiedMs, storeNowMs, bytes: new Uint8Array(0) };
    });
  }

  /** Sorts by itself, after the last page: not every S3 store lists in order. */
  async *list(
    prefix: string,
    { startAfter, anyOrder = false }: ListOptions = {},
  ): AsyncIterable<ObjectInfo> {
    if (anyOrder) {
      for await (const page of this.#pages(prefix, startAfter, true)) yield* page;
      return;
    }
    const found: ObjectInfo[] = [];
    for await (const page of this.#pages(prefix, startAfter, false)) found.push(...page);
    yield* found.toSorted((a, b) => a.key < b.key ? -1 : 1);
  }

  async *#pages(
    prefix: string,
    startAfter: string | undefined,
    isRepeated: boolean,
  ): AsyncGenerator<ObjectInfo[]> {
    let token: string | undefined;
    do {
      const ask = () => this.#listPage(prefix, startAfter, token);
      const page = await (isRepeated ? repeat(this.#requests, ask) : ask());
      yield (page.Contents ?? [])
        .map((info) => ({ info, key: info.Key ?? "", size: info.Size ?? 0 }))
        .filter(({ key }) => startAfter === undefined || key > startAfter)
        .map(({ info, key, size }) => ({ key, size, lastModifiedMs: listedAtMs(info) }));
      token = page.IsTruncated === true ? page.NextContinuationToken : undefined;
    } while (token !== undefined);
  }

  #listPage(prefix: string, startAfter: string | undefined, token: string | undefined) {
    const command = new ListObjectsV2Command({
      Bucket: this.#requests.bucket,
      Prefix: prefix,
      ...(startAfter === undefined ? {} : { StartAfter: startAfter }),
      ...(token === undefined ? {} : { ContinuationToken: token }),
    });
    return this.#requests.run(`list ${prefix}`, 0, undefined, async ({ signal }) => {
      const page = await this.#requests.client.send(command, { abortSignal: signal });
      expectPage(page, token);
      return page;
    });
  }

  async delete(keys: readonly string[]): Promise<DeleteAnswer> {
    const gone: string[] = [];
    for (let at = 0; at < keys.length; at += STORE_DELETE_BATCH_KEYS_MAX) {
      const batch = keys.slice(at, at + STORE_DELETE_BATCH_KEYS_MAX);
      gone.push(...await this.#deleteBatch(batch));
    }
    const confirmed = new Set(gone);
    return { gone, failed: keys.filter((key) => !confirmed.has(key)) };
  }

  /** The keys that are confirmed to be gone: the status is 200 even where some failed. */
  async #deleteBatch(keys: readonly string[]): Promise<readonly string[]> {
    if (keys.length === 1 || !this.#hasBatchDelete) return await this.#deleteSingly(keys);
    try {
      const command = new DeleteObjectsCommand({
        Bucket: this.#requests.bucket,
        Delete: { Objects: keys.map((Key) => ({ Key })) },
      });
      const { Deleted = [], Errors = [] } = await this.#requests.run(
        "delete a batch",
        0,
        undefined,
        ({ signal }) => this.#requests.client.send(command, { abortSignal: signal }),
      );
      const absent = Errors.filter(({ Code }) => Code === "NoSuchKey");
      return [...Deleted, ...absent].map(({ Key = "" }) => Key);
    } catch (error) {
      if (!isFault(error)) throw error;
      const { name, status } = s3ErrorInfo(error.cause);
      if (!NO_BATCH_STATUSES.has(status) || PASSING_TROUBLE.has(name)) throw error;
      const gone = await this.#deleteSingly(keys);
      // Else the refusal came from something on the way, or the store is away.
      if (gone.length > 0) this.#hasBatchDelete = false;
      return gone;
    }
  }

  async #deleteSingly(keys: readonly string[]): Promise<readonly string[]> {
    const permits = new Semaphore(STORE_SINGLE_DELETES_MAX);
    const outcomes = await Promise.allSettled(
      keys.map((key) => permits.run(() => this.#deleteOne(key))),
    );
    const failure = outcomes.find((outcome) => outcome.status === "rejected");
    if (failure !== undefined && keys.length === 1) throw failure.reason;
    return keys.filter((_, i) => outcomes[i]?.status === "fulfilled");
  }

  #deleteOne(key: string): Promise<void> {
    return this.#requests.run(`delete ${key}`, 0, undefined, async (attempt) => {
      const command = new DeleteObjectCommand({ Bucket: this.#requests.bucket, Key: key });
      const answer = await this.#requests.answer(
        attempt,
        () => this.#requests.client.send(command, { abortSignal: attempt.signal }),
      );
      if (answer.ok) expectDeleted(answer.value);
      else expectAbsent(answer);
    });
  }

  async close(): Promise<void> {
    this.#requests.client.destroy();
  }
}

async function* joined(head: readonly Uint8Array[], rest: AsyncIterable<Uint8Array>) {
  yield* head;
  yield* rest;
}

async function bodyOf({ Body, ContentLength }: GetObjectCommandOutput): Promise<Uint8Array> {
  // Reading through a Response is cheaper than the client's own helper.
  const stream: unknown = Body;
  const bytes = stream instanceof ReadableStream
    ? new Uint8Array(await new Response(stream).arrayBuffer())
    : await Body?.transformToByteArray() ?? new Uint8Array(0);
  if (ContentLength !== undefined && bytes.length !== ContentLength) {
    throw new Error(`the body ended after ${bytes.length} of ${ContentLength} bytes`);
  }
  return bytes;
}

function gotObject(
  key: string,
  answer: GetObjectCommandOutput,
  bytes: Uint8Array,
  storeNowMs: number,
  range: ByteRange | undefined,
): GotObject {
  const size = range === undefined
    ? bytes.length
    : sizeByRange(answer.ContentRange, range, bytes.length);
  const lastModifiedMs = readAtMs(answer.LastModified, storeNowMs);
  return { key, size, lastModifiedMs, storeNowMs, bytes };
}

/**
 * What is cut short must not pass for the whole: whoever finds no snapshot, or no object, acts on it. Nor does an
 * answer of somebody else, as a proxy's page, say that nothing is there.
 */
function expectPage(page: ListObjectsV2Output, token: string | undefined): void {
  const { IsTruncated, NextContinuationToken, Contents = [] } = page;
  if (IsTruncated === undefined) throw new Error("the answer is no listing");
  if (Contents.some(({ Key, Size }) => Key === undefined || Size === undefined)) {
    throw new Error("the listing has an object without key or size");
  }
  if (!IsTruncated) return;
  if (NextContinuationToken === undefined || NextContinuationToken === "") {
    throw new Error("the listing is cut short and does not say where it goes on");
  }
  if (NextContinuationToken === token) {
    throw new Error("the listing goes on where it is");
  }
}
