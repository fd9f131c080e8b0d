/** Damage to what a partition stores beside its records, from which its log must come back. */
import {
  decodeMetaKeyValue,
  encodeMetaKeyValue,
  type MetaKeyValue,
} from "../../src/log/meta_codec.ts";
import {
  decodeSnapshots,
  encodeSnapshots,
  type ProducerSnapshot,
} from "../../src/log/producer_snapshot.ts";
import type { Harness } from "./partition_harness.ts";

type Tampered = Pick<Harness, "streams" | "metaStream">;

/** Each entry of the meta stream gets the value that is returned for it. */
export function tamperMeta(
  { streams, metaStream }: Tampered,
  change: (entry: MetaKeyValue) => Uint8Array,
): void {
  streams.tamper(metaStream!, (record) => {
    const entry = decodeMetaKeyValue(record.payload);
    return { ...record, payload: encodeMetaKeyValue(entry.key, change(entry)) };
  });
}

export function tamperSnapshots(
  h: Tampered,
  change: (list: readonly ProducerSnapshot[]) => readonly ProducerSnapshot[],
): void {
  tamperMeta(
    h,
    ({ key, value }) =>
      key === "PRODUCER_SNAPSHOTS" ? encodeSnapshots(change(decodeSnapshots(value))) : value,
  );
}

/** Leaves only the log to open from. */
export function loseSnapshots(h: Tampered): void {
  tamperSnapshots(h, () => []);
}
