/**
 * Whether a store charges for requests: then writes are batched to a budget instead of as fast as they go.
 * And what the well-known ones charge, for `skerry cost`.
 */
import * as v from "valibot";
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

const dollars = v.pipe(v.number(), v.finite(), v.minValue(0));

/** Prices of one store in US dollars, without free allowances. Deletions are free at all that we know. */
const priceSchema = v.strictObject({
  store: v.pipe(v.string(), v.minLength(1), v.maxLength(100)),
  /** Of a million PUT, COPY, POST and LIST requests. */
  perMillionWrites: dollars,
  /** Of a million GET and HEAD requests. */
  perMillionReads: dollars,
  /** Of a GiB sent to the store, and read from it, where requests are not all. */
  perGibIn: v.optional(dollars, 0),
  perGibOut: v.optional(dollars, 0),
});
export const priceTableSchema = v.array(priceSchema);
export const PRICES_ALLOWED = "a list of {store, perMillionWrites, perMillionReads, perGibIn, " +
  "perGibOut}: a name, then dollars; the last two are 0 when they are missing";

export type StorePrices = v.InferOutput<typeof priceSchema>;

const GIB_PER_GB = 2 ** 30 / 1e9;

/** As published for us-east-1 in 2026; inside the region, where it has one. */
export const PRICES: readonly StorePrices[] = [
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

/** The configured table first; a store that it names counts as it says there. */
export function withPrices(configured: readonly StorePrices[]): readonly StorePrices[] {
  const names = new Set(configured.map(({ store }) => store));
  return [...configured, ...PRICES.filter(({ store }) => !names.has(store))];
}
