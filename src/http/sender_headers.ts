/** Headers that a sender gave its request, as headers of a record. */
import { bytesOfHeader } from "./header_text.ts";
import type { RecordHeader } from "./port.ts";

/** What every client or proxy sends is no part of what happened; nor are the secrets of a connection. */
const STANDARD: ReadonlySet<string> = new Set([
  "accept",
  "accept-charset",
  "accept-encoding",
  "accept-language",
  "authorization",
  "cache-control",
  "connection",
  "content-encoding",
  "content-length",
  "content-type",
  "cookie",
  "date",
  "expect",
  "forwarded",
  "from",
  "host",
  "keep-alive",
  "origin",
  "pragma",
  "proxy-authorization",
  "referer",
  "te",
  "trailer",
  "transfer-encoding",
  "upgrade",
  "user-agent",
  "via",
  "x-forwarded-for",
  "x-forwarded-host",
  "x-forwarded-port",
  "x-forwarded-proto",
  "x-real-ip",
]);

export function senderHeaders(headers: Headers): RecordHeader[] {
  const found: RecordHeader[] = [];
  headers.forEach((value, name) => {
    if (!STANDARD.has(name)) found.push({ name, value: bytesOfHeader(value) });
  });
  return found;
}
