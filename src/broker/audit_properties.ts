/** The broker properties of the daily look for objects that nobody names. */
import { AUDIT_INTERVAL_MS } from "../lib/limits.ts";
import { ownLong, type Property } from "./property.ts";

export const AUDIT_PROPERTIES: readonly Property[] = [
  {
    name: "skerry.audit.enable",
    type: "boolean",
    fallback: "true",
    documentation:
      "Whether this node lists the store once in a while and deletes objects that no metadata names " +
      "or can ever name. Of several nodes the one with the smallest id does it.",
  },
  {
    name: "skerry.audit.delete",
    type: "boolean",
    fallback: "true",
    documentation: "Without it what an audit finds is counted and named in the log, and stays.",
  },
  ownLong(
    "audit.interval.ms",
    AUDIT_INTERVAL_MS,
    [60_000, 365 * AUDIT_INTERVAL_MS],
    "Time between audits. Nothing happens when metadata did not change since the last one.",
  ),
  ownLong(
    "audit.requests.per.second",
    1,
    [1, 1_000],
    "Pace of an audit: a listing is a request per 1,000 objects, a deletion one per 500.",
  ),
];
