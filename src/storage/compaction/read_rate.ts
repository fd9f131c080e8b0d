/** How fast compaction may read: a floor, or a multiple of what was uploaded of late. Pure. */
import { COMPACTION_FOLLOW_MS, COMPACTION_FOLLOW_TIMES } from "../../lib/limits.ts";

/** Shorter stretches would take one upload for a rate. */
const SAMPLE_MS_MIN = 1_000;

export class ReadRate {
  readonly #floor: number;
  #atMs: number;
  #bytes: number;
  /** Weighs the past less and less. */
  #uploadedPerMs = 0;

  constructor(floorPerMs: number, nowMs: number, uploadedBytes: number) {
    this.#floor = floorPerMs;
    this.#atMs = nowMs;
    this.#bytes = uploadedBytes;
  }

  /** `uploadedBytes` is what was uploaded in all; it only grows. */
  bytesPerMs(nowMs: number, uploadedBytes: number): number {
    const ms = nowMs - this.#atMs;
    if (ms >= SAMPLE_MS_MIN) {
      const past = Math.exp(-ms / COMPACTION_FOLLOW_MS);
      const rate = (uploadedBytes - this.#bytes) / ms;
      this.#uploadedPerMs = past * this.#uploadedPerMs + (1 - past) * rate;
      this.#atMs = nowMs;
      this.#bytes = uploadedBytes;
    }
    return Math.max(this.#floor, COMPACTION_FOLLOW_TIMES * this.#uploadedPerMs);
  }
}
