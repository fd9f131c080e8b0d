/** The format of keys and values: by the type of a body, and by what its reader accepts. */
import { mediaType } from "../../media_type.ts";
import { type Format, FORMATS } from "../instances/record.ts";
import { restError, typeOf } from "./shape.ts";

const TYPES: ReadonlyMap<string, Format> = new Map<string, Format>([
  ...FORMATS.map((format) => [typeOf(format), format] as const),
  // Without a format in their name they are binary, as at the proxies.
  ["application/vnd.kafka.v2+json", "binary"],
  ["application/vnd.kafka+json", "binary"],
  ["application/json", "json"],
]);

export function formatOfBody(request: Request): Format {
  const type = mediaType(request);
  const format = TYPES.get(type);
  if (format !== undefined) return format;
  const why = /avro|jsonschema|protobuf/.test(type)
    ? "there is no schema registry behind this node"
    : `allowed are ${[...TYPES.keys()].join(", ")}`;
  throw restError(415, `Cannot use the content type ${type.slice(0, 100)}: ${why}`, 415);
}

/** Those that a client names, in no order; null when anything will do. */
function acceptedBy({ headers }: Request): readonly string[] | null {
  const types = (headers.get("accept") ?? "").split(",")
    .map((part) => part.split(";")[0]!.trim().toLowerCase())
    .filter((type) => type !== "");
  return types.length === 0 || types.includes("*/*") || types.includes("application/*")
    ? null
    : types;
}

/** The client's choice; `fallback` where it has none. */
export function formatAccepted(request: Request, fallback: Format): Format {
  const types = acceptedBy(request);
  if (types === null) return fallback;
  const format = types.map((type) => TYPES.get(type)).find((one) => one !== undefined);
  if (format !== undefined) return format;
  throw restError(40_601, "Cannot answer in a type that the Accept header names");
}

/** An instance has its format from its beginning. */
export function expectFormat(request: Request, format: Format): void {
  const types = acceptedBy(request);
  if (types === null || types.some((type) => TYPES.get(type) === format)) return;
  throw restError(40_601, `Cannot answer in another format than the instance's: ${format}`);
}
