/** Base64 for URLs and tokens (RFC 4648, section 5), without padding. */

const CHARS_AT_ONCE = 8192;

export function toBase64Url(bytes: Uint8Array): string {
  let binary = "";
  for (let at = 0; at < bytes.length; at += CHARS_AT_ONCE) {
    binary += String.fromCharCode(...bytes.subarray(at, at + CHARS_AT_ONCE));
  }
  return btoa(binary).replaceAll("+", "-").replaceAll("/", "_").replace(/=+$/, "");
}
