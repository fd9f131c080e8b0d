/** What a process has used so far, from /proc; zeros where there is none. */
import { readFileSync } from "node:fs";

const TICKS_PER_S = 100;
const PAGE_BYTES = 4096;

export interface Usage {
  readonly cpuMs: number;
  readonly minorFaults: number;
  readonly rssMib: number;
}

export function usageOf(pid: number): Usage {
  try {
    const fields = readFileSync(`/proc/${pid}/stat`, "utf8").split(") ")[1]!.split(" ");
    const number = (at: number) => Number(fields[at]);
    return {
      minorFaults: number(7),
      cpuMs: (number(11) + number(12)) * 1000 / TICKS_PER_S,
      rssMib: number(21) * PAGE_BYTES / 2 ** 20,
    };
  } catch {
    return { cpuMs: 0, minorFaults: 0, rssMib: 0 };
  }
}
