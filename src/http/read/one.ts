/** GET of one record: its value as the body, 204 for a tombstone, 404 when compaction has removed it. */
import * as v from "valibot";
import type { ReadQuery } from "../port.ts";
import { problemResponse } from "../problem.ts";
import { rawResponse } from "../raw_record.ts";
import { type Found, readProblem } from "./page.ts";
import { isolationField, isolationNamed } from "./parameters.ts";
import type { Place, ReadServices } from "./partition.ts";

export const oneQuery = v.strictObject({ isolation: isolationField });

/** Why there is no such record: the log ends before it, compaction has removed it, or it is not committed. */
function missing(page: Found, offset: number, isolation: ReadQuery["isolation"]): Response {
  const { logStart, highWatermark } = page;
  if (offset >= highWatermark) {
    const message = `Cannot read offset ${offset}: the log ends at ${highWatermark}`;
    const error = "OFFSET_OUT_OF_RANGE" as const;
    return problemResponse(readProblem({ ok: false, error, message, logStart, highWatermark }));
  }
  return problemResponse({
    status: 404,
    title: "Not found",
    detail: `Cannot read offset ${offset}: ` +
      (isolation === "committed"
        ? "it is not committed, or compaction has removed it"
        : "compaction has removed it"),
  });
}

export async function consumeOne(
  { gateway, clock }: ReadServices,
  request: Request,
  { topic, partition }: Place,
  offset: number,
  query: v.InferOutput<typeof oneQuery>,
): Promise<Response> {
  const isolation = isolationNamed(query.isolation);
  const page = await gateway.read(topic, partition, {
    offset,
    isolation,
    recordsMax: 1,
    bytesMax: 1,
    recordBytesMax: Infinity,
    waitMs: 0,
    signal: request.signal,
  });
  if (!page.ok) return problemResponse(readProblem(page));
  const record = page.records[0];
  if (record?.offset === offset) {
    return rawResponse(record, { partition, request, clock, release: () => page.release() });
  }
  page.release();
  return missing(page, offset, isolation);
}
