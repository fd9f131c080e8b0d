/** Values of HTTP headers as bytes. */
import { toUtf8 } from "../lib/bytes.ts";

const strictUtf8 = new TextDecoder("utf-8", { fatal: true });

/**
 * The bytes that a client sent in a header. Hosts give them as Latin-1: what is UTF-8 on the wire comes
 * apart, and is put together here; what is not was Latin-1 for the client too.
 */
export function bytesOfHeader(text: string): Uint8Array {
  const isWire = /[\x80-\xff]/.test(text) && !/[\u0100-\uffff]/.test(text);
  if (!isWire) return toUtf8(text);
  const bytes = Uint8Array.from(text, (char) => char.charCodeAt(0));
  try {
    strictUtf8.decode(bytes);
    return bytes;
  } catch {
    return toUtf8(text);
  }
}
