/**
 * Shapes of stored JSON: a reader that checks a value and gives it a type. Records and snapshot rows
 * are read through them. A field that a shape does not name is ignored, so a later version may add one
 * only when an older reader can do without it; everything else raises the feature level (entry.ts).
 */
import { corrupt } from "../lib/corrupt.ts";

/** Where a value stands; null while nobody asks: a path for each field would cost more than the reading. */
export type Path = string | null;
export type Shape<T> = (value: unknown, path: Path) => T;
export type Of<S> = S extends Shape<infer T> ? T : never;

/** Reads a whole value. Only one that does not fit is read again, to say where. */
export function readShape<T>(shape: Shape<T>, value: unknown, path: string): T {
  try {
    return shape(value, null);
  } catch {
    return shape(value, path);
  }
}

function below(path: Path, segment: string): Path {
  return path === null ? null : `${path}${segment}`;
}

function wrong(path: Path, wanted: string, value: unknown): never {
  throw corrupt(`Cannot read ${path}: ${wanted} expected, ${typeof value} found`);
}

/** A non-negative safe integer: JSON numbers of any other kind never leave a writer. */
export const int: Shape<number> = (value, path) =>
  typeof value === "number" && Number.isSafeInteger(value) && value >= 0
    ? value
    : wrong(path, "a non-negative safe integer", value);

export const text: Shape<string> = (value, path) =>
  typeof value === "string" ? value : wrong(path, "a string", value);

export const flag: Shape<boolean> = (value, path) =>
  typeof value === "boolean" ? value : wrong(path, "a boolean", value);

export function branded<T extends number>(brand: (value: number) => T): Shape<T> {
  return (value, path) => brand(int(value, path));
}

export function nullable<T>(inner: Shape<T>): Shape<T | null> {
  return (value, path) => value === null ? null : inner(value, path);
}

export function list<T>(inner: Shape<T>): Shape<readonly T[]> {
  return (value, path) =>
    Array.isArray(value)
      ? value.map((item, i) => inner(item, path === null ? null : `${path}[${i}]`))
      : wrong(path, "a list", value);
}

export function pair<A, B>(first: Shape<A>, second: Shape<B>): Shape<readonly [A, B]> {
  return (value, path) =>
    Array.isArray(value) && value.length === 2
      ? [first(value[0], below(path, "[0]")), second(value[1], below(path, "[1]"))]
      : wrong(path, "a pair", value);
}

export function oneOf<const T extends string>(...names: readonly T[]): Shape<T> {
  return (value, path) =>
    names.find((name) => name === value) ?? wrong(path, names.join(" or "), value);
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** A map with free keys. */
export function mapOf<T>(inner: Shape<T>): Shape<Readonly<Record<string, T>>> {
  return (value, path) =>
    isObject(value)
      ? Object.fromEntries(
        Object.entries(value).map(([key, item]) => [
          key,
          inner(item, path === null ? null : `${path}.${key}`),
        ]),
      )
      : wrong(path, "an object", value);
}

type Fields = Readonly<Record<string, Shape<unknown>>>;
type StructOf<F extends Fields> = { readonly [K in keyof F]: Of<F[K]> };

export function struct<F extends Fields>(fields: F): Shape<StructOf<F>> {
  const readers = Object.entries(fields);
  return (value, path) => {
    if (!isObject(value)) return wrong(path, "an object", value);
    const read: Record<string, unknown> = {};
    for (const [name, shape] of readers) {
      read[name] = shape(value[name], path === null ? null : `${path}.${name}`);
    }
    // The loop has just built every field of F by its own shape.
    return read as StructOf<F>;
  };
}
