/**
 * JSON with the text that it came from: a value of a record is stored as it was written, because a
 * number, an order of fields or a field that stands twice does not survive a parser. Places are found in
 * text that `JSON.parse` has taken, so nothing is checked again; each level is one pass.
 */
import { assert } from "../lib/assert.ts";

const [QUOTE, BACKSLASH, COMMA] = [0x22, 0x5c, 0x2c];
const [OPEN_ARRAY, CLOSE_ARRAY, OPEN_OBJECT, CLOSE_OBJECT] = [0x5b, 0x5d, 0x7b, 0x7d];

/** A parsed value and where it begins in its text. */
export interface Sourced {
  readonly value: unknown;
  readonly text: string;
  readonly at: number;
}

function isSpace(code: number): boolean {
  return code === 0x20 || code === 0x0a || code === 0x0d || code === 0x09;
}

function skipSpace(text: string, at: number): number {
  let end = at;
  while (isSpace(text.charCodeAt(end))) end += 1;
  return end;
}

function isEscaped(text: string, quoteAt: number): boolean {
  let from = quoteAt;
  while (text.charCodeAt(from - 1) === BACKSLASH) from -= 1;
  return (quoteAt - from) % 2 === 1;
}

/** From an opening quote to behind the closing one. */
function skipString(text: string, at: number): number {
  let end = text.indexOf('"', at + 1);
  while (end >= 0 && isEscaped(text, end)) end = text.indexOf('"', end + 1);
  assert(end >= 0, "a string of parsed JSON ends");
  return end + 1;
}

function skipScalar(text: string, at: number): number {
  let end = at;
  for (; end < text.length; end++) {
    const code = text.charCodeAt(end);
    if (code === COMMA || code === CLOSE_ARRAY || code === CLOSE_OBJECT || isSpace(code)) break;
  }
  return end;
}

function skipValue(text: string, at: number): number {
  const first = text.charCodeAt(at);
  if (first === QUOTE) return skipString(text, at);
  if (first !== OPEN_ARRAY && first !== OPEN_OBJECT) return skipScalar(text, at);
  let end = at;
  for (let depth = 0; end < text.length;) {
    const code = text.charCodeAt(end);
    if (code === QUOTE) {
      end = skipString(text, end);
      continue;
    }
    end += 1;
    if (code === OPEN_ARRAY || code === OPEN_OBJECT) depth += 1;
    else if (code === CLOSE_ARRAY || code === CLOSE_OBJECT) depth -= 1;
    if (depth === 0) break;
  }
  return end;
}

/** From behind a value to the next one of its list, or to the bracket that ends it. */
function skipComma(text: string, at: number): number {
  const end = skipSpace(text, at);
  return text.charCodeAt(end) === COMMA ? skipSpace(text, end + 1) : end;
}

/** The string between two quotes; few names have escapes, and a parser costs more than the rest. */
function nameIn(text: string, at: number, end: number): string {
  const inner = text.slice(at + 1, end - 1);
  return inner.includes("\\") ? JSON.parse(text.slice(at, end)) as string : inner;
}

/** `value` is what `JSON.parse` made of the whole text. */
export function sourced(text: string, value: unknown): Sourced {
  return { value, text, at: skipSpace(text, 0) };
}

/** The text of a value alone, without the space around it. */
export function sourceOf({ text, at }: Sourced): string {
  return text.slice(at, skipValue(text, at));
}

/** The elements of an array, one by one: there may be millions. */
export function* elementsOf({ value, text, at }: Sourced): Generator<Sourced, void> {
  let next = skipSpace(text, at + 1);
  for (const element of value as readonly unknown[]) {
    yield { value: element, text, at: next };
    next = skipComma(text, skipValue(text, next));
  }
}

/** The fields of an object by their names, or the first name that stands twice. */
export function fieldsOf({ value, text, at }: Sourced): ReadonlyMap<string, Sourced> | string {
  const fields = new Map<string, Sourced>();
  for (let next = skipSpace(text, at + 1); text.charCodeAt(next) === QUOTE;) {
    const nameEnd = skipString(text, next);
    const name = nameIn(text, next, nameEnd);
    if (fields.has(name)) return name;
    const valueAt = skipSpace(text, skipSpace(text, nameEnd) + 1);
    fields.set(name, { value: (value as Record<string, unknown>)[name], text, at: valueAt });
    next = skipComma(text, skipValue(text, valueAt));
  }
  return fields;
}
