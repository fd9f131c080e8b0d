/**
 * Whether a store charges for requests: then writes are batched to a budget instead of as fast as they go.
 * And what the well-known ones charge, for `skerry cost`.
 */
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

/** List prices in US dollars, without free allowances. Deletions are free at all of them. */
interface RequestPrices {
  readonly store: string;
  /** Of a million PUT, COPY, POST and LIST requests. */
  readonly perMillionWrites: number;
  /** Of a million GET and HEAD requests. */
  readonly perMillionReads: number;
  /** Of a GiB sent to the store, and read from it, where requests are not all. */
  readonly perGibIn: number;
  readonly perGibOut: number;
}

const GIB_PER_GB = 2 ** 30 / 1e9;

/** As published for us-east-1 in 2026; inside the region, where it has one. */
export const PRICES: readonly RequestPrices[] = [
  { store: "S3 Standard", perMillionWrites: 5, perMillionReads: 0.4, perGibIn: 0, perGibOut: 0 },
  {
    store: "S3 Express One Zone",
    perMillionWrites: 1.13,
    perMillionReads: 0.03,
    perGibIn: 0.0032 * GIB_PER_GB,
    perGibOut: 0.0006 * GIB_PER_GB,
  },
  {
    store: "Cloudflare R2",
    perMillionWrites: 4.5,
    perMillionReads: 0.36,
    perGibIn: 0,
    perGibOut: 0,
  },
];
