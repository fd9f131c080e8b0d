/** Which of several media types a client wants, by its Accept header. */

/** The weight of a media type; what is no number counts as 1. */
function weightOf(parameters: readonly string[]): number {
  const q = parameters.map((text) => /^\s*q\s*=\s*([\d.]+)\s*$/i.exec(text)?.[1])
    .find((text) => text !== undefined);
  const weight = Number(q ?? 1);
  return Number.isNaN(weight) ? 1 : weight;
}

/**
 * The format that is named with the highest weight. The first one is what clients get that name none, or any;
 * among equals a later one wins, for it was named on purpose.
 */
export function formatWanted<T extends string>(
  request: Request,
  formats: readonly (readonly [format: T, types: readonly string[]])[],
): T {
  let [best] = formats[0]!;
  let most = 0;
  const weights = new Map<string, number>();
  for (const part of (request.headers.get("accept") ?? "").split(",")) {
    const [type = "", ...parameters] = part.split(";");
    const name = type.trim().toLowerCase();
    weights.set(name, Math.max(weights.get(name) ?? 0, weightOf(parameters)));
  }
  for (const [format, types] of formats) {
    const weight = Math.max(0, ...types.map((type) => weights.get(type) ?? 0));
    if (weight > 0 && weight >= most) [best, most] = [format, weight];
  }
  return best;
}

export const JSON_TYPES = ["application/json"];
export const LINE_TYPES = ["application/x-ndjson", "application/jsonl"];
export const BATCH_TYPES = ["application/vnd.kafka.batch"];
export const EVENT_TYPES = ["text/event-stream"];
