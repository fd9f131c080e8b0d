/**
 * The object store port: what Skerry needs of S3, of a directory or of memory.
 * Keys are relative, `/`-separated and never start or end with `/`. Only one conditional primitive
 * exists, create-if-absent; a definite answer to it comes from `create.ts`.
 */

/** A half-open byte range. */
export interface ByteRange {
  readonly start: number;
  readonly end: number;
}

export interface ObjectInfo {
  readonly key: string;
  readonly size: number;
  /** By the store's own clock, milliseconds since 1970. */
  readonly lastModifiedMs: number;
}

export interface GotObject extends ObjectInfo {
  readonly bytes: Uint8Array;
  /** The store's clock when it answered. */
  readonly storeNowMs: number;
}

export interface PutOptions {
  /** Create only: answers `created: false` when the key exists (If-None-Match: *). */
  readonly ifAbsent?: boolean;
  readonly signal?: AbortSignal;
}

export interface PutAnswer {
  readonly created: boolean;
  readonly storeNowMs: number;
}

export interface GetOptions {
  /** Clipped to the object's end; a start at or past the end gives zero bytes. */
  readonly range?: ByteRange;
  readonly signal?: AbortSignal;
}

export interface ListOptions {
  /** Only keys greater than this one. */
  readonly startAfter?: string;
  /** As the store tells them, page by page: a listing of everything must not have to fit into memory. */
  readonly anyOrder?: boolean;
}

export interface DeleteAnswer {
  /** Keys that are confirmed not to exist any more. */
  readonly gone: readonly string[];
  readonly failed: readonly string[];
}

/**
 * All methods throw FaultError (`store-unavailable`, `store-denied`, `store-full`, `aborted`) and
 * nothing else. A thrown put is ambiguous: it may have happened, or may still happen.
 */
export interface ObjectStore {
  /** One atomic write: readers see all of the bytes or nothing. Durable when it resolves. */
  put(key: string, body: Uint8Array, options?: PutOptions): Promise<PutAnswer>;
  /** A large object in parts of equal size (the last may be smaller); atomic at the end like `put`. */
  putParts(key: string, parts: AsyncIterable<Uint8Array>): Promise<void>;
  get(key: string, options?: GetOptions): Promise<GotObject | null>;
  head(key: string): Promise<ObjectInfo | null>;
  /** Keys that start with the prefix, ascending by code unit unless any order will do. */
  list(prefix: string, options?: ListOptions): AsyncIterable<ObjectInfo>;
  /** A missing key counts as gone. */
  delete(keys: readonly string[]): Promise<DeleteAnswer>;
  close(): Promise<void>;
}
