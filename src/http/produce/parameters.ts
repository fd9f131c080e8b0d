/** What several ways to write take as parameters. */
import * as v from "valibot";
import { choice, described, flag, partition as partitionNumber } from "../api/fields.ts";

export const acks = v.optional(
  described(choice(["all", "0"]), "0: answer 202 before the records are stored"),
  "all",
);
export const bare = v.optional(described(flag, "values stand without envelopes"), false);
export const key = v.optional(described(v.string(), "of a raw record"));
export const partition = v.optional(described(partitionNumber, "of a raw record or an event"));
