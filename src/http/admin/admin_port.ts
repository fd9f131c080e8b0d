/** What administration over HTTP needs of the broker. */
import type { Failure } from "../port.ts";

export interface ConfigRow {
  readonly name: string;
  readonly value: string;
  readonly default: string;
  /** Who set the value: the topic, the broker while it runs or at its start, or nobody. */
  readonly source: string;
  readonly type: string;
  readonly documentation: string;
}

/** Texts by name; null takes a setting back. */
export type ConfigChanges = Readonly<Record<string, string | null>>;

export interface PartitionRow {
  readonly partition: number;
  readonly leader: number | null;
  readonly leaderEpoch: number;
  /** Null where the partition cannot be opened here and now. */
  readonly log: {
    readonly earliest: number;
    readonly latest: number;
    readonly lastStable: number;
    readonly bytes: number;
  } | null;
}

export interface RecordsToDelete {
  readonly partition: number;
  readonly before: number | "all";
}

export type RecordsDeleted =
  | { readonly ok: true; readonly partition: number; readonly logStart: number }
  | (Failure & { readonly partition: number });

export interface NodeRow {
  readonly nodeId: number;
  readonly host: string;
  readonly port: number;
}

/** Types to names; null is the default of a type. */
export type QuotaEntity = Readonly<Record<string, string | null | undefined>>;

export interface QuotaRow {
  readonly entity: QuotaEntity;
  readonly limits: Readonly<Record<string, number | undefined>>;
}

export interface StoreCosts {
  /** Bytes of records that became durable since the node was started. */
  readonly produced: number;
  readonly requests: Requests;
  /** What they are for. */
  readonly byClass: Readonly<Record<string, Requests>>;
  /** In US dollars, without free allowances. */
  readonly costs: readonly {
    readonly store: string;
    readonly total: number;
    readonly perGib: number | null;
  }[];
}

export interface Requests {
  readonly writes: number;
  readonly reads: number;
  readonly deletes: number;
  readonly bytesIn: number;
  readonly bytesOut: number;
}

type Outcome = { readonly ok: true } | Failure;

export interface AdminGateway {
  describeConfigs(topic: string): Promise<readonly ConfigRow[] | null>;
  /** Both, or nothing where either is refused; what fails in between is told. */
  changeTopic(
    topic: string,
    change: { readonly partitions: number | null; readonly configs: ConfigChanges },
  ): Promise<Outcome>;
  /** In order, from one on; null without the topic. */
  describePartitions(
    topic: string,
    from: number,
    limit: number,
  ): Promise<readonly PartitionRow[] | null>;
  deleteRecords(
    topic: string,
    wanted: readonly RecordsToDelete[],
  ): Promise<readonly RecordsDeleted[]>;
  nodes(): readonly NodeRow[];
  featureLevels(): Readonly<Record<string, number>>;
  quotas(): readonly QuotaRow[];
  /** In place of all limits of the entity; none removes it. */
  putQuota(quota: QuotaRow): Promise<Outcome>;
  /** From the counters of its requests. */
  costs(): StoreCosts;
}
