/** What an open partition log is made of, and how far its checkpoints are. */
import type { Offset, StreamEpoch } from "../lib/brand.ts";
import type { Env } from "../env/env.ts";
import type { Stream } from "../stream/stream.ts";
import type { Checkpointer } from "./checkpoint.ts";
import type { LogState } from "./log_state.ts";
import type { LogConfig } from "./partition_log.ts";

export interface PartitionLogOptions {
  /** For log lines. */
  readonly name: string;
  readonly leaderEpoch: StreamEpoch;
  readonly config: LogConfig;
  readonly env: Env;
  readonly log: Stream;
  readonly state: LogState;
  readonly checkpointer: Checkpointer;
  /** Bytes that a crash now would have to replay. */
  readonly uncheckpointedBytes: number;
  /** Offset of the newest checkpoint; -1 when there is none. */
  readonly checkpointedTo: Offset;
}
