/** Whether a store charges for requests: then writes are batched to a budget instead of as fast as they go. */
import type { StoreLocation } from "./options.ts";

const PRIVATE_HOST =
  /^(localhost|\[?::1\]?|127\.|10\.|192\.168\.|172\.(1[6-9]|2\d|3[01])\.|\[?f[cd]|.*\.(local|internal|lan)$)/i;

/** A directory and memory are free; so is an S3 endpoint at a private address or without a domain. */
export function hasPrices(store: StoreLocation, endpoint: string | null): boolean {
  if (store.kind !== "s3") return false;
  if (endpoint === null) return true;
  const { hostname } = new URL(endpoint);
  return !PRIVATE_HOST.test(hostname) && hostname.includes(".");
}
