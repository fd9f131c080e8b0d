/** A configuration property as data: name, type, default, what is allowed. Parses texts the way Kafka does. */
import { PROPERTY_CHARS_MAX } from "../lib/limits.ts";

export type PropertyType = "boolean" | "string" | "int" | "long" | "double" | "list";

export interface Property {
  readonly name: string;
  readonly type: PropertyType;
  readonly fallback: string;
  readonly documentation: string;
  /** Bounds of a number. */
  readonly min?: bigint;
  readonly max?: bigint;
  /** A number within the bounds that is not allowed. */
  readonly except?: bigint;
  /** Allowed words of a string or a list. */
  readonly words?: readonly string[];
  /** What each item of a list must look like, and how to say so. */
  readonly items?: { readonly like: RegExp; readonly words: string };
  /** What a string must look like, and how to say so. */
  readonly like?: { readonly like: RegExp; readonly words: string };
  /** A broker property that may change while the broker runs. */
  readonly dynamic?: true;
  /** Stored and shown for tools; nothing here obeys it, and its documentation says so. */
  readonly shownOnly?: true;
}

export const INT_MAX = 2_147_483_647n;
export const LONG_MAX = 9_223_372_036_854_775_807n;

/** A number of Skerry's own: `name` follows `skerry.`, bounds are inclusive. */
export function ownLong(
  name: string,
  fallback: number,
  [min, max]: readonly [min: number, max: number],
  documentation: string,
): Property {
  return {
    name: `skerry.${name}`,
    type: "long",
    fallback: String(fallback),
    min: BigInt(min),
    max: BigInt(max),
    documentation,
  };
}

/** A text in canonical form, or what is wrong with it. */
export type Checked =
  | { readonly ok: true; readonly value: string }
  | { readonly ok: false; readonly message: string };

export function listOf(text: string): string[] {
  return text.split(",").map((item) => item.trim()).filter((item) => item !== "");
}

function refuse(property: Property, text: string, allowed: string): Checked {
  return {
    ok: false,
    message: `Invalid value ${text.slice(0, 100)} for configuration ${property.name}: ${allowed}`,
  };
}

function checkInteger(property: Property, text: string): Checked {
  const limit = property.type === "int" ? INT_MAX : LONG_MAX;
  const min = property.min ?? -limit - 1n;
  const max = property.max ?? limit;
  const but = property.except === undefined ? "" : ` but ${property.except}`;
  const allowed = `an integer from ${min} to ${max}${but}`;
  if (!/^[+-]?\d{1,19}$/.test(text)) return refuse(property, text, allowed);
  const value = BigInt(text.replace(/^\+/, ""));
  return value < min || value > max || value === property.except
    ? refuse(property, text, allowed)
    : { ok: true, value: String(value) };
}

const DECIMAL = /^[+-]?(?:\d+\.?\d*|\.\d+)(?:e[+-]?\d+)?$/i;

function checkDouble(property: Property, text: string): Checked {
  const value = DECIMAL.test(text) ? Number(text) : Number.NaN;
  const min = Number(property.min ?? 0n);
  const max = Number(property.max ?? LONG_MAX);
  return !(value >= min && value <= max)
    ? refuse(property, text, `a number from ${min} to ${max}`)
    : { ok: true, value: text };
}

function checkList(property: Property, text: string): Checked {
  const items = listOf(text);
  const words = property.words;
  if (words !== undefined && !items.every((item) => words.includes(item))) {
    return refuse(property, text, `a list of ${words.join(", ")}`);
  }
  const like = property.items;
  if (like !== undefined && !items.every((item) => like.like.test(item))) {
    return refuse(property, text, like.words);
  }
  return { ok: true, value: items.join(",") };
}

function checkWord(property: Property, text: string, words: readonly string[]): Checked {
  return words.includes(text)
    ? { ok: true, value: text }
    : refuse(property, text, `one of ${words.join(", ")}`);
}

function checkString(property: Property, text: string): Checked {
  const { words, like } = property;
  if (words !== undefined) return checkWord(property, text, words);
  return like === undefined || like.like.test(text)
    ? { ok: true, value: text }
    : refuse(property, text, like.words);
}

export function checkProperty(property: Property, raw: string): Checked {
  if (raw.length > PROPERTY_CHARS_MAX) {
    return refuse(property, raw, `at most ${PROPERTY_CHARS_MAX} characters`);
  }
  const text = raw.trim();
  switch (property.type) {
    case "int":
    case "long":
      return checkInteger(property, text);
    case "double":
      return checkDouble(property, text);
    case "list":
      return checkList(property, text);
    case "boolean":
      return checkWord(property, text.toLowerCase(), property.words ?? ["true", "false"]);
    case "string":
      return checkString(property, text);
  }
}

/** A checked integer as a number; those near Long.MAX lose digits that no comparison needs. */
export function numberOf(text: string): number {
  return Number(text);
}
