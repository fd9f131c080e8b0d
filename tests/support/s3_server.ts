/**
 * A small S3 over HTTP for tests and benches: conditional put, range get, head, list v2 with pages,
 * single and batch delete, multipart, a latency model and fault hooks. Signatures are not checked.
 * As a program: `s3_server.ts --port 9000 --latency-ms 20`; it prints one JSON line when it listens.
 */
import { createHash } from "node:crypto";
import type { IncomingMessage, Server, ServerResponse } from "node:http";
import { createServer } from "node:http";
import process from "node:process";
import { concatBytes } from "../../src/lib/bytes.ts";
import {
  batchDeleteXml,
  completeXml,
  errorXml,
  initiateXml,
  keysOfBatch,
  listXml,
} from "./s3_xml.ts";

export type S3Op = "put" | "get" | "head" | "list" | "delete" | "delete-batch" | "multipart";

export interface S3Call {
  readonly op: S3Op;
  readonly key: string;
  /** Counts calls since the server started, from 1. */
  readonly number: number;
  readonly body: Uint8Array;
  readonly isConditional: boolean;
}

/** What happens to one call; undefined means that all goes well. */
export interface S3Fault {
  /** Wait this long before the call takes effect. */
  readonly delayMs?: number;
  /** Refuse with this status and code, without any effect. */
  readonly refuse?: { readonly status: number; readonly code: string };
  /** Let the call take effect, then cut the connection instead of answering. */
  readonly loseAnswer?: boolean;
  /** Cut the connection before the call takes effect. */
  readonly dropRequest?: boolean;
  /** Answer now, and deliver the same put a second time this much later. */
  readonly repeatAfterMs?: number;
  /** Take effect this much after the connection was cut: a late duplicate. */
  readonly lateEffectMs?: number;
  /** Answer this body with status 200, without any effect. */
  readonly answer?: string;
  /** Answer this, without any effect, as somebody else in the server's place would. */
  readonly reply?: Reply;
  /** Keys of a batch delete that answer InternalError and stay. */
  readonly failKeys?: readonly string[];
}

export interface S3ServerOptions {
  readonly port?: number;
  readonly bucket?: string;
  /** Keys per page of a listing. */
  readonly pageKeys?: number;
  /** Wait before every effect, in ms: fixed part, plus per MiB of body, plus up to `jitterMs`. */
  readonly latency?: {
    readonly baseMs: number;
    readonly perMibMs?: number;
    readonly jitterMs?: number;
  };
  /** Answer a conditional put as if the condition had not been sent, as some servers do. */
  readonly ignoreConditions?: boolean;
}

interface Stored {
  readonly bytes: Uint8Array;
  readonly modified: Date;
  readonly etag: string;
}

export interface S3Server {
  readonly url: string;
  readonly port: number;
  readonly bucket: string;
  readonly objects: ReadonlyMap<string, Stored>;
  readonly calls: Readonly<Record<S3Op, number>>;
  readonly openUploads: number;
  /** Asked for every call; replaces the former hook. */
  onCall(hook: (call: S3Call) => S3Fault | undefined): void;
  close(): Promise<void>;
}

interface Upload {
  readonly key: string;
  readonly parts: Map<number, Uint8Array>;
}

interface Reply {
  readonly status: number;
  readonly body?: string | Uint8Array;
  readonly headers?: Readonly<Record<string, string>>;
}

const MIB = 1024 * 1024;
const wait = (ms: number) => new Promise<void>((resolve) => void setTimeout(resolve, ms));

function refusal(status: number, code: string): Reply {
  return { status, body: errorXml(code), headers: { "content-type": "application/xml" } };
}

function xml(body: string): Reply {
  return { status: 200, body, headers: { "content-type": "application/xml" } };
}

function etagOf(bytes: Uint8Array): string {
  return `"${createHash("md5").update(bytes).digest("hex")}"`;
}

/** The bucket's content and its rules, without HTTP. */
class Bucket {
  readonly objects = new Map<string, Stored>();
  readonly uploads = new Map<string, Upload>();
  readonly #pageKeys: number;
  readonly #ignoreConditions: boolean;
  #uploadCount = 0;

  constructor(options: S3ServerOptions) {
    this.#pageKeys = options.pageKeys ?? 1_000;
    this.#ignoreConditions = options.ignoreConditions ?? false;
  }

  put(key: string, bytes: Uint8Array, isConditional: boolean): Reply {
    if (isConditional && !this.#ignoreConditions && this.objects.has(key)) {
      return refusal(412, "PreconditionFailed");
    }
    const stored = { bytes, modified: new Date(), etag: etagOf(bytes) };
    this.objects.set(key, stored);
    return { status: 200, headers: { etag: stored.etag } };
  }

  get(key: string, range: string | undefined, withBody: boolean): Reply {
    const stored = this.objects.get(key);
    if (stored === undefined) return withBody ? refusal(404, "NoSuchKey") : { status: 404 };
    const headers = { etag: stored.etag, "last-modified": stored.modified.toUTCString() };
    const match = /^bytes=(\d+)-(\d+)$/.exec(range ?? "");
    const size = stored.bytes.length;
    if (match === null) {
      const length = { "content-length": String(size) };
      return {
        status: 200,
        headers: { ...headers, ...length },
        ...(withBody ? { body: stored.bytes } : {}),
      };
    }
    const start = Number(match[1]);
    const end = Math.min(Number(match[2]) + 1, size);
    if (start >= size) return refusal(416, "InvalidRange");
    const body = stored.bytes.subarray(start, end);
    return {
      status: 206,
      body,
      headers: { ...headers, "content-range": `bytes ${start}-${end - 1}/${size}` },
    };
  }

  list(query: URLSearchParams): Reply {
    const prefix = query.get("prefix") ?? "";
    const after = query.get("continuation-token") ?? query.get("start-after") ?? "";
    const all = [...this.objects.keys()].filter((key) => key.startsWith(prefix) && key > after)
      .toSorted();
    const page = all.slice(0, this.#pageKeys);
    const next = all.length > page.length ? page.at(-1) : undefined;
    return xml(listXml(page.map((key) => ({ key, ...this.objects.get(key)! })), next));
  }

  deleteBatch(
    body: Uint8Array,
    headers: IncomingMessage["headers"],
    failKeys: readonly string[],
  ): Reply {
    const md5 = createHash("md5").update(body).digest("base64");
    if (headers["content-md5"] !== md5) return refusal(400, "InvalidRequest");
    const keys = keysOfBatch(new TextDecoder().decode(body));
    const gone = keys.filter((key) => !failKeys.includes(key));
    for (const key of gone) this.objects.delete(key);
    return xml(batchDeleteXml(gone, keys.filter((key) => failKeys.includes(key))));
  }

  multipart(method: string, key: string, query: URLSearchParams, body: Uint8Array): Reply {
    if (query.has("uploads")) {
      const id = `upload-${++this.#uploadCount}`;
      this.uploads.set(id, { key, parts: new Map() });
      return xml(initiateXml(key, id));
    }
    const id = query.get("uploadId") ?? "";
    const upload = this.uploads.get(id);
    if (upload === undefined) return refusal(404, "NoSuchUpload");
    if (method === "PUT") {
      upload.parts.set(Number(query.get("partNumber")), body);
      return { status: 200, headers: { etag: etagOf(body) } };
    }
    this.uploads.delete(id);
    if (method === "DELETE") return { status: 204 };
    const parts = [...upload.parts].toSorted(([a], [b]) => a - b).map(([, part]) => part);
    this.put(key, concatBytes(parts), false);
    return xml(completeXml(key, this.objects.get(key)!.etag));
  }
}

function opOf(method: string, key: string, query: URLSearchParams): S3Op | null {
  if (query.has("uploads") || query.has("uploadId")) return "multipart";
  if (key === "") {
    return method === "POST" && query.has("delete")
      ? "delete-batch"
      : method === "GET"
      ? "list"
      : null;
  }
  const ops: Readonly<Record<string, S3Op>> = {
    PUT: "put",
    GET: "get",
    HEAD: "head",
    DELETE: "delete",
  };
  return ops[method] ?? null;
}

async function readBody(request: IncomingMessage): Promise<Uint8Array> {
  const chunks: Uint8Array[] = [];
  for await (const chunk of request) chunks.push(chunk as Uint8Array);
  return new Uint8Array(concatBytes(chunks));
}

function write(response: ServerResponse, reply: Reply): void {
  const body = reply.body ?? "";
  response.writeHead(reply.status, { "content-length": Buffer.byteLength(body), ...reply.headers });
  response.end(body);
}

/** Starts on 127.0.0.1; port 0 (the default) takes a free one. */
export async function startS3Server(options: S3ServerOptions = {}): Promise<S3Server> {
  const bucketName = options.bucket ?? "skerry-test";
  const bucket = new Bucket(options);
  const calls: Record<S3Op, number> = {
    put: 0,
    get: 0,
    head: 0,
    list: 0,
    delete: 0,
    "delete-batch": 0,
    multipart: 0,
  };
  let number = 0;
  let hook: (call: S3Call) => S3Fault | undefined = () => undefined;

  function latencyMs(bytes: number): number {
    const { baseMs = 0, perMibMs = 0, jitterMs = 0 } = options.latency ?? {};
    return baseMs + perMibMs * bytes / MIB + jitterMs * Math.random();
  }

  async function serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const { method = "GET", headers } = request;
    const url = new URL(request.url ?? "/", "http://s3");
    const [name = "", ...rest] = url.pathname.slice(1).split("/");
    const key = decodeURIComponent(rest.join("/"));
    const body = await readBody(request);
    const op = opOf(method, key, url.searchParams);
    if (name !== bucketName) return write(response, refusal(404, "NoSuchBucket"));
    if (op === null) return write(response, refusal(501, "NotImplemented"));
    calls[op]++;
    const isConditional = headers["if-none-match"] === "*";
    const fault = hook({ op, key, number: ++number, body, isConditional }) ?? {};

    function act(): Reply {
      if (op === "put") return bucket.put(key, body, isConditional);
      if (op === "get" || op === "head") return bucket.get(key, headers.range, op === "get");
      if (op === "list") return bucket.list(url.searchParams);
      if (op === "delete-batch") return bucket.deleteBatch(body, headers, fault.failKeys ?? []);
      if (op === "multipart") return bucket.multipart(method, key, url.searchParams, body);
      bucket.objects.delete(key);
      return { status: 204 };
    }

    const pauseMs = latencyMs(body.length) + (fault.delayMs ?? 0);
    if (pauseMs > 0) await wait(pauseMs);
    if (fault.refuse !== undefined) {
      return write(response, refusal(fault.refuse.status, fault.refuse.code));
    }
    if (fault.reply !== undefined) return write(response, fault.reply);
    if (fault.answer !== undefined) return write(response, xml(fault.answer));
    if (fault.lateEffectMs !== undefined) later(fault.lateEffectMs, act);
    if (fault.dropRequest === true || fault.lateEffectMs !== undefined) {
      return void request.socket.destroy();
    }
    const reply = act();
    if (fault.repeatAfterMs !== undefined) later(fault.repeatAfterMs, act);
    if (fault.loseAnswer === true) return void request.socket.destroy();
    write(response, reply);
  }

  const timers = new Set<ReturnType<typeof setTimeout>>();
  function later(ms: number, act: () => unknown): void {
    const timer = setTimeout(() => {
      timers.delete(timer);
      act();
    }, ms);
    timers.add(timer);
  }

  const server = createServer((request, response) => {
    serve(request, response).catch(() => request.socket.destroy());
  });
  const port = await listen(server, options.port ?? 0);
  return {
    url: `http://127.0.0.1:${port}`,
    port,
    bucket: bucketName,
    objects: bucket.objects,
    calls,
    get openUploads() {
      return bucket.uploads.size;
    },
    onCall(next) {
      hook = next;
    },
    close() {
      for (const timer of timers) clearTimeout(timer);
      server.closeAllConnections();
      return new Promise((resolve) => void server.close(() => resolve()));
    },
  };
}

function listen(server: Server, port: number): Promise<number> {
  return new Promise((resolve, reject) => {
    server.once("error", reject);
    server.listen(port, "127.0.0.1", () => {
      const address = server.address();
      resolve(typeof address === "object" && address !== null ? address.port : port);
    });
  });
}

async function main(args: readonly string[]): Promise<void> {
  const number = (name: string, fallback: number) => {
    const at = args.indexOf(name);
    return at < 0 ? fallback : Number(args[at + 1]);
  };
  const server = await startS3Server({
    port: number("--port", 0),
    latency: {
      baseMs: number("--latency-ms", 0),
      perMibMs: number("--latency-per-mib-ms", 0),
      jitterMs: number("--jitter-ms", 0),
    },
  });
  process.stdout.write(
    `${JSON.stringify({ event: "ready", url: server.url, bucket: server.bucket })}\n`,
  );
  process.on("SIGTERM", () => void server.close().then(() => process.exit(0)));
}

if (import.meta.main) await main(process.argv.slice(2));
