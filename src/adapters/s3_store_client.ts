/**
 * The S3 client over fetch, set up as measured: no checksums that only cost CPU, no body hash where
 * the transport protects the bytes, no retries of the client's own (an unseen retry would turn our
 * own create into a conflict), a time limit per request, and the store's clock from the Date header.
 */
import type { S3ClientConfig } from "@aws-sdk/client-s3";
import { S3Client } from "@aws-sdk/client-s3";
import { FetchHttpHandler } from "@smithy/fetch-http-handler";
import type { Cancel, Clock } from "../env/clock.ts";
import { toBase64 } from "../lib/base64.ts";
import { toUtf8 } from "../lib/bytes.ts";
import { FaultError } from "../lib/errors.ts";
import { STORE_REQUEST_TIMEOUT_MS, STORE_SLOWEST_BYTES_PER_MS } from "../lib/limits.ts";
import { md5 } from "../lib/md5.ts";
import { s3ErrorInfo, s3Fault } from "./s3_store_fault.ts";

export interface S3Options {
  readonly bucket: string;
  /** Everything lives below it; empty for the whole bucket. */
  readonly prefix?: string;
  /** Null for AWS itself. */
  readonly endpoint?: string | null;
  readonly region?: string;
  /** Bucket in the path instead of the host name: what most servers other than AWS want. */
  readonly pathStyle?: boolean;
  readonly credentials: {
    readonly accessKeyId: string;
    readonly secretAccessKey: string;
    readonly sessionToken?: string;
  } | null;
  readonly clock: Clock;
}

/** Statuses that are outcomes of a request and not faults. */
const OUTCOMES: ReadonlySet<number> = new Set([304, 404, 412, 416]);

export type S3Answer<T> =
  | { readonly ok: true; readonly value: T; readonly storeNowMs: number }
  | {
    readonly ok: false;
    readonly status: number;
    /** The S3 error code, where the answer had a body. */
    readonly name: string;
    readonly storeNowMs: number;
  };

export interface S3Attempt {
  readonly signal: AbortSignal;
  /** Starts the time limit anew, with time for this many bytes. */
  expect(bytes: number): void;
}

/** Notes the Date header of every answer, also of refusals, under the signal that came with the request. */
class DatingHandler extends FetchHttpHandler {
  readonly #dates: WeakMap<object, number>;

  constructor(dates: WeakMap<object, number>) {
    // Elsewhere the signature would not hold, and a page there that says 200 would pass for the store's answer.
    super({ keepAlive: true, requestInit: () => ({ redirect: "manual" }) });
    this.#dates = dates;
  }

  override async handle(
    ...args: Parameters<FetchHttpHandler["handle"]>
  ): ReturnType<FetchHttpHandler["handle"]> {
    const answer = await super.handle(...args);
    const dateMs = Date.parse(answer.response.headers["date"] ?? "");
    const signal = args[1]?.abortSignal;
    if (signal !== undefined && !Number.isNaN(dateMs)) this.#dates.set(signal, dateMs);
    return answer;
  }
}

export class S3Requests {
  readonly client: S3Client;
  readonly bucket: string;
  readonly clock: Clock;
  readonly #dates = new WeakMap<object, number>();

  constructor(options: S3Options) {
    this.client = new S3Client(clientConfig(options, new DatingHandler(this.#dates)));
    this.bucket = options.bucket;
    this.clock = options.clock;
    if (isTransportTrusted(options.endpoint ?? null)) addUnsignedPayload(this.client);
    addContentMd5(this.client);
  }

  /**
   * Runs one request with a time limit of its own. `bodyBytes` is what it uploads; what it downloads
   * is announced through `expect`. Throws FaultError for all but the outcomes above.
   */
  async run<T>(
    what: string,
    bodyBytes: number,
    signal: AbortSignal | undefined,
    work: (attempt: S3Attempt) => Promise<T>,
  ): Promise<T> {
    if (isAborted(signal)) throw aborted(what);
    const stop = new AbortController();
    const onAbort = () => stop.abort();
    signal?.addEventListener("abort", onAbort, { once: true });
    let cancel: Cancel = () => {};
    const expect = (bytes: number) => {
      cancel();
      const limitMs = STORE_REQUEST_TIMEOUT_MS + bytes / STORE_SLOWEST_BYTES_PER_MS;
      cancel = this.clock.after(limitMs, onAbort);
    };
    expect(bodyBytes);
    try {
      return await work({ signal: stop.signal, expect });
    } catch (error) {
      if (isAborted(signal)) throw aborted(what, error);
      if (isAborted(stop.signal)) {
        const message = `Cannot ${what}: no answer in time`;
        throw new FaultError("store-unavailable", message, { retriable: true, cause: error });
      }
      throw s3Fault(error, what);
    } finally {
      cancel();
      signal?.removeEventListener("abort", onAbort);
    }
  }

  /** Tells outcomes from faults and reads the store's clock. `send` has to pass the attempt's signal on. */
  async answer<T>({ signal }: S3Attempt, send: () => Promise<T>): Promise<S3Answer<T>> {
    const storeNowMs = () => this.#dates.get(signal) ?? this.clock.nowMs();
    try {
      const value = await send();
      return { ok: true, value, storeNowMs: storeNowMs() };
    } catch (error) {
      const { name, status } = s3ErrorInfo(error);
      if (!OUTCOMES.has(status) || name === "NoSuchBucket") throw error;
      return { ok: false, status, name, storeNowMs: storeNowMs() };
    }
  }
}

function isAborted(signal: AbortSignal | undefined): boolean {
  return signal?.aborted === true;
}

function aborted(what: string, cause?: unknown): FaultError {
  return new FaultError("aborted", `Cannot ${what}: aborted`, { retriable: true, cause });
}

function clientConfig(options: S3Options, requestHandler: FetchHttpHandler): S3ClientConfig {
  const { credentials, endpoint = null, region = "us-east-1", pathStyle = false } = options;
  if (credentials === null) {
    throw new FaultError("config", "The S3 store needs an access key and a secret key", {
      retriable: false,
    });
  }
  return {
    region,
    credentials: { ...credentials },
    forcePathStyle: pathStyle,
    maxAttempts: 1,
    requestChecksumCalculation: "WHEN_REQUIRED",
    responseChecksumValidation: "WHEN_REQUIRED",
    requestHandler,
    ...(endpoint === null ? {} : { endpoint }),
  };
}

/** TLS protects the body on its way, and nothing can change it between two local processes. */
function isTransportTrusted(endpoint: string | null): boolean {
  if (endpoint === null) return true;
  const { protocol, hostname } = new URL(endpoint);
  return protocol === "https:" || ["localhost", "127.0.0.1", "[::1]"].includes(hostname);
}

interface WireRequest {
  readonly headers: Record<string, string>;
  readonly body?: unknown;
}

function isWireRequest(request: unknown): request is WireRequest {
  return typeof request === "object" && request !== null && "headers" in request;
}

/** No client option turns the body's SHA-256 off for bytes; the signer takes this header for it. */
function addUnsignedPayload(client: S3Client): void {
  client.middlewareStack.add((next) => (args) => {
    if (isWireRequest(args.request)) {
      args.request.headers["x-amz-content-sha256"] = "UNSIGNED-PAYLOAD";
    }
    return next(args);
  }, { step: "build", priority: "low", name: "skerryUnsignedPayload" });
}

/** A batch delete carries Content-MD5, which all servers know, instead of the client's CRC-32, which few do. */
function addContentMd5(client: S3Client): void {
  client.middlewareStack.add((next, context) => (args) => {
    const { request } = args;
    if (context["commandName"] === "DeleteObjectsCommand" && isWireRequest(request)) {
      for (const name of Object.keys(request.headers)) {
        if (/^x-amz-(sdk-)?checksum-/i.test(name)) delete request.headers[name];
      }
      request.headers["content-md5"] = toBase64(md5(bytesOf(request.body)));
    }
    return next(args);
  }, { step: "build", priority: "low", name: "skerryContentMd5" });
}

function bytesOf(body: unknown): Uint8Array {
  return body instanceof Uint8Array ? body : toUtf8(String(body));
}
