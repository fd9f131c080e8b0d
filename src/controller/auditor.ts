/**
 * Once a day, and only after metadata changed, this lists the store and deletes the objects that no row names
 * and nobody will ever name again: what a late repetition of a write brought back, what a failed delete left.
 * A name is judged twice, while it is listed and by metadata read after the listing, and must be a day old.
 * It writes no metadata. One node does it for all, a request at a time, at a pace of its own.
 */
import { type Cancel, sleep } from "../env/clock.ts";
import type { Env } from "../env/env.ts";
import { type NodeId, type Position, position } from "../lib/brand.ts";
import { corrupt } from "../lib/corrupt.ts";
import { messageOf } from "../lib/errors.ts";
import {
  AUDIT_AGE_MS_MIN,
  AUDIT_FIRST_MS,
  AUDIT_FOUND_MAX,
  AUDIT_LINES_MAX,
  STORE_DELETE_BATCH_KEYS_MAX,
  STORE_LIST_PAGE_KEYS,
} from "../lib/limits.ts";
import { CLUSTER_KEY } from "../object/object_key.ts";
import type { ObjectInfo, ObjectStore } from "../object/object_store.ts";
import { isKeeper } from "./gc.ts";
import type { Image } from "./image.ts";
import type { MetadataStore } from "./metadata_store.ts";
import { listSnapshots } from "./object_log.ts";
import { trimBoundary } from "./snapshot_keeper.ts";
import { createJudge, type NameKind, type NameVerdict } from "./unreferenced.ts";

export interface AuditOptions {
  readonly intervalMs: number;
  /** Listings and deletes; one of either is up to a thousand keys. */
  readonly requestsPerSecond: number;
  /** False: what is found is counted and named, and stays. */
  readonly deletes: boolean;
}

export interface AuditorOptions {
  readonly store: ObjectStore;
  readonly env: Env;
  readonly clusterId: string;
  readonly nodeId: NodeId;
  readonly metadata: MetadataStore;
  readonly options: AuditOptions;
  /** T_TRIM, as the metadata store has it: what that keeps tells ages, and is not unreferenced. */
  readonly trimAgeMs?: number;
}

export interface Audited {
  readonly keys: number;
  readonly found: number;
  readonly deleted: number;
  readonly deletedBytes: number;
  /** Objects that metadata does not know yet: it lost its end, if this is not 0. */
  readonly ahead: number;
}

export interface Auditor {
  /** From now on by itself. */
  start(): void;
  /** One audit, whatever changed. Null when another node does it, or the auditor closes. */
  audit(): Promise<Audited | null>;
  close(): Promise<void>;
}

export function createAuditor(options: AuditorOptions): Auditor {
  return new StoreAuditor(options);
}

interface Suspect {
  readonly key: string;
  readonly size: number;
  readonly what: NameKind;
  readonly detail: string;
}

interface Caught {
  keys: number;
  readonly suspects: Suspect[];
  readonly ahead: string[];
  /** Suspects that are too young, or too many: another audit is due whatever happens. */
  left: number;
}

class StoreAuditor implements Auditor {
  readonly #options: AuditorOptions;
  readonly #abort = new AbortController();
  #cancel: Cancel = () => {};
  #running: Promise<Audited | null> | null = null;
  /** Where metadata stood at the last audit. */
  #auditedAt: Position | null = null;

  constructor(options: AuditorOptions) {
    this.#options = options;
  }

  start(): void {
    this.#schedule(Math.min(AUDIT_FIRST_MS, this.#options.options.intervalMs));
  }

  audit(): Promise<Audited | null> {
    this.#running ??= this.#audit().finally(() => {
      this.#running = null;
    });
    return this.#running;
  }

  async close(): Promise<void> {
    this.#abort.abort();
    this.#cancel();
    await this.#running?.catch(() => {});
  }

  #schedule(delayMs: number): void {
    const { env, options } = this.#options;
    if (this.#abort.signal.aborted) return;
    this.#cancel = env.clock.after(delayMs, () => {
      void this.#look().finally(() => this.#schedule(options.intervalMs));
    });
  }

  /** Without a change there is nothing new but what a write from before it brings back: that can wait for one. */
  async #look(): Promise<void> {
    const { metadata, env } = this.#options;
    if (metadata.view().at === this.#auditedAt) return;
    try {
      await this.audit();
    } catch (error) {
      if (this.#abort.signal.aborted) return;
      env.metrics.count("skerry_audit_runs_total", { outcome: "failed" });
      env.log.log("warn", "audit-failed", { reason: messageOf(error) });
    }
  }

  async #audit(): Promise<Audited | null> {
    const { metadata, nodeId, store, env, options } = this.#options;
    if (!isKeeper(metadata.view(), nodeId)) return null;
    const cluster = await store.get(CLUSTER_KEY);
    if (cluster === null) throw corrupt(`${CLUSTER_KEY} is missing`);
    const boundary = await this.#boundary(cluster.storeNowMs);
    const oldMs = cluster.storeNowMs - AUDIT_AGE_MS_MIN;
    const caught = await this.#list(boundary, oldMs);
    if (caught === null) return null;
    const image = await metadata.fresh();
    const { at } = image;
    const sure = this.#judgedAgain(caught, image, boundary);
    const mayDelete = options.deletes && sure.ahead.length === 0;
    const { deleted, deletedBytes } = mayDelete
      ? await this.#delete(sure.suspects)
      : { deleted: 0, deletedBytes: 0 };
    const found = sure.suspects.length;
    const isDone = caught.left === 0 && sure.ahead.length === 0 &&
      (!options.deletes || deleted === found);
    this.#auditedAt = isDone ? at : null;
    const audited = { keys: caught.keys, found, deleted, deletedBytes, ahead: sure.ahead.length };
    env.metrics.count("skerry_audit_runs_total", { outcome: "done" });
    env.metrics.gauge("skerry_audit_last_run_seconds", Math.floor(env.clock.nowMs() / 1_000));
    env.metrics.gauge("skerry_audit_ahead_objects", audited.ahead);
    env.log.log("info", "audited", { ...audited });
    return audited;
  }

  /** The end of what the next snapshot's trim would delete. */
  async #boundary(storeNowMs: number): Promise<Position> {
    const { store, clusterId, trimAgeMs } = this.#options;
    const snapshots = await listSnapshots(store, clusterId);
    return trimBoundary(snapshots, storeNowMs, trimAgeMs) ?? position(0);
  }

  /** Null when the auditor closes meanwhile. */
  async #list(boundary: Position, oldMs: number): Promise<Caught | null> {
    const { store, clusterId, metadata } = this.#options;
    const caught: Caught = { keys: 0, suspects: [], ahead: [], left: 0 };
    const judge = () => createJudge({ clusterId, image: metadata.view(), boundary });
    let ofPage = judge();
    for await (const info of store.list("", { anyOrder: true })) {
      if (caught.keys > 0 && caught.keys % STORE_LIST_PAGE_KEYS === 0) {
        await this.#pause();
        // Metadata went on meanwhile.
        ofPage = judge();
      }
      if (this.#abort.signal.aborted) return null;
      caught.keys += 1;
      take(caught, info, ofPage.of(info.key), oldMs);
    }
    return caught;
  }

  /** What was listed is older than this image: whatever is still unreferenced stays so. */
  #judgedAgain(caught: Caught, image: Image, boundary: Position): Caught {
    const { clusterId, env } = this.#options;
    const judge = createJudge({ clusterId, image, boundary });
    const ahead = caught.ahead.filter((key) => judge.of(key).kind === "ahead");
    for (const key of ahead.slice(0, AUDIT_LINES_MAX)) {
      env.log.log("error", "metadata-behind-store", { key, position: image.at });
    }
    const suspects = caught.suspects.filter(({ key }) => judge.of(key).kind === "unreferenced");
    for (const { key, detail, what } of suspects.slice(0, AUDIT_LINES_MAX)) {
      env.log.log("info", "object-unreferenced", { key, detail, kind: what });
    }
    for (const { what } of suspects) env.metrics.count("skerry_audit_found_total", { kind: what });
    return { ...caught, suspects, ahead };
  }

  async #delete(suspects: readonly Suspect[]): Promise<{ deleted: number; deletedBytes: number }> {
    const { store, env } = this.#options;
    let deleted = 0;
    let deletedBytes = 0;
    for (let at = 0; at < suspects.length; at += STORE_DELETE_BATCH_KEYS_MAX) {
      await this.#pause();
      if (this.#abort.signal.aborted) break;
      const batch = suspects.slice(at, at + STORE_DELETE_BATCH_KEYS_MAX);
      const gone = new Set((await store.delete(batch.map(({ key }) => key))).gone);
      for (const { what, size } of batch.filter(({ key }) => gone.has(key))) {
        deleted += 1;
        deletedBytes += size;
        env.metrics.count("skerry_audit_deleted_total", { kind: what });
        env.metrics.count("skerry_audit_deleted_bytes_total", {}, size);
      }
    }
    return { deleted, deletedBytes };
  }

  #pause(): Promise<void> {
    const { env, options } = this.#options;
    return sleep(env.clock, 1_000 / options.requestsPerSecond, this.#abort.signal);
  }
}

function take(caught: Caught, info: ObjectInfo, verdict: NameVerdict, oldMs: number): void {
  const { suspects, ahead } = caught;
  const { key, size, lastModifiedMs } = info;
  if (verdict.kind === "ahead" && ahead.length < AUDIT_FOUND_MAX) ahead.push(key);
  if (verdict.kind !== "unreferenced") return;
  if (lastModifiedMs > oldMs || suspects.length >= AUDIT_FOUND_MAX) caught.left += 1;
  else suspects.push({ key, size, what: verdict.what, detail: verdict.detail });
}
