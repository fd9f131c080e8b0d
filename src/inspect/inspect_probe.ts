/** What the probe of a start writes, and a start that is killed in it leaves behind. */
import { toHex } from "../lib/bytes.ts";
import { probeWriterOf } from "../object/probe.ts";
import type { ByteSource } from "./byte_source.ts";
import { type Item, item } from "./item.ts";

/** Longer than any body of a probe. */
const SHOWN_BYTES_MAX = 256;

export async function* inspectProbe(
  source: ByteSource,
): AsyncGenerator<Item, string | null> {
  const [run = "", name = ""] = source.name.split("/").slice(-2);
  const bytes = await source.read(0, Math.min(source.size, SHOWN_BYTES_MAX));
  const writer = probeWriterOf(bytes);
  yield item("probe", 0, { run, name, writer, body: toHex(bytes) });
  return writer === null ? "not what a probe writes" : null;
}
