/** Bytes as text (RFC 4648): base64 with padding, and its form for URLs and tokens without. */

/** As arguments of one call. */
const CHARS_AT_ONCE = 8192;

export function toBase64(bytes: Uint8Array): string {
  let binary = "";
  for (let at = 0; at < bytes.length; at += CHARS_AT_ONCE) {
    binary += String.fromCharCode(...bytes.subarray(at, at + CHARS_AT_ONCE));
  }
  return btoa(binary);
}

export function toBase64Url(bytes: Uint8Array): string {
  return toBase64(bytes).replaceAll("+", "-").replaceAll("/", "_").replace(/=+$/, "");
}
