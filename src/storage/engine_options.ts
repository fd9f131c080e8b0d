/** What the storage engine is made of, and the numbers that may differ per node. */
import type { Env } from "../env/env.ts";
import type { NodeId } from "../lib/brand.ts";
import {
  BLOCK_CACHE_BYTES_MAX,
  INDEX_CACHE_BYTES_MAX,
  LOG_CACHE_BYTES_MAX,
  OBJECT_ID_BLOCK,
  RANGE_INDEX_BYTES_MAX,
  SPARSE_INDEX_OBJECTS_MIN,
  STREAM_OBJECT_SPLIT_BYTES,
  UNCOMMITTED_AGE_MS_MAX,
  UNCOMMITTED_SLOTS_MAX,
  UPLOAD_BLOCK_BYTES,
  UPLOAD_INTERVAL_MS,
} from "../lib/limits.ts";
import type { ObjectStore } from "../object/object_store.ts";
import type { ObjectManager, StreamManager } from "./ports.ts";
import { DEFAULT_PUT_SIZES, type PutSizes } from "./put_sizes.ts";
import type { Wal } from "./wal/wal.ts";
import type { Learned } from "./written_index.ts";

export interface EngineOptions {
  /** Uncommitted bytes past which appends are refused; also what readers of fresh data live on. */
  readonly logCacheBytesMax: number;
  /** A block of the log cache is uploaded at this size. */
  readonly uploadBytes: number;
  /** A dirty block is uploaded after this time. */
  readonly uploadIntervalMs: number;
  /** Uncommitted WAL slots past which appends are refused. */
  readonly slotsMax: number;
  /** Age of the oldest uncommitted record past which appends are refused. */
  readonly ageMsMax: number;
  /** Rate of uploads; null to follow the producers. Neither holds when somebody waits or room gets short. */
  readonly uploadBytesPerSecond: number | null;
  readonly splitBytes: number;
  readonly blockCacheBytesMax: number;
  readonly indexCacheBytesMax: number;
  readonly rangeIndexBytesMax: number;
  /** Stream set objects of this node, and changes of them, from which on it writes a sparse index. */
  readonly sparseObjectsMin: number;
  readonly idBlock: number;
  readonly puts: PutSizes;
}

export const DEFAULT_ENGINE_OPTIONS: EngineOptions = {
  logCacheBytesMax: LOG_CACHE_BYTES_MAX,
  uploadBytes: UPLOAD_BLOCK_BYTES,
  uploadIntervalMs: UPLOAD_INTERVAL_MS,
  slotsMax: UNCOMMITTED_SLOTS_MAX,
  ageMsMax: UNCOMMITTED_AGE_MS_MAX,
  uploadBytesPerSecond: null,
  splitBytes: STREAM_OBJECT_SPLIT_BYTES,
  blockCacheBytesMax: BLOCK_CACHE_BYTES_MAX,
  indexCacheBytesMax: INDEX_CACHE_BYTES_MAX,
  rangeIndexBytesMax: RANGE_INDEX_BYTES_MAX,
  sparseObjectsMin: SPARSE_INDEX_OBJECTS_MIN,
  idBlock: OBJECT_ID_BLOCK,
  puts: DEFAULT_PUT_SIZES,
};

export interface EngineParts {
  readonly env: Env;
  readonly store: ObjectStore;
  /** The same, for reads of what opens; `store` when absent. */
  readonly openStore?: ObjectStore;
  readonly wal: Wal;
  readonly objects: ObjectManager;
  readonly streams: Pick<StreamManager, "viewStream">;
  readonly clusterId: string;
  readonly nodeId: NodeId;
  readonly options?: Partial<EngineOptions>;
  /** Called with a problem while uploads fail, with null when they work again. */
  readonly onHealth?: (problem: string | null) => void;
  /** After each commit of an upload. */
  readonly onUploaded?: (written: Learned) => void;
  /** Called once when the engine can never work again: fenced, or metadata refused a commit. */
  readonly onFatal?: (error: unknown) => void;
}
