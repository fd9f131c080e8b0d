/** Parameters of a query string: UTF-8, each at most once, numbers in digits. Throws ProblemError. */
import { badRequest } from "./problem.ts";
import { hasQuery, urlOf } from "./target.ts";

const SHOWN_CHARS_MAX = 100;

export function queryOf(request: Request): URLSearchParams {
  if (!hasQuery(request)) return new URLSearchParams();
  const { search, searchParams } = urlOf(request);
  try {
    decodeURIComponent(search);
  } catch {
    // The parser would put replacement characters into it, and nobody would know.
    throw badRequest("Cannot use the query: it is no percent-encoded UTF-8");
  }
  return searchParams;
}

/** A parameter that nobody looks at is a mistake that nobody would notice. */
export function expectOnly(query: URLSearchParams, names: readonly string[]): void {
  for (const name of query.keys()) {
    if (names.includes(name)) continue;
    const shown = name.slice(0, SHOWN_CHARS_MAX);
    throw badRequest(
      `Cannot use ${shown}: there is no such parameter; allowed: ${names.join(", ")}`,
    );
  }
}

/** Null when it is absent. Which of two would count is nobody's guess. */
export function parameter(query: URLSearchParams, name: string): string | null {
  const values = query.getAll(name);
  if (values.length > 1) throw badRequest(`Cannot use ${name}: it is given ${values.length} times`);
  return values[0] ?? null;
}

/** Digits only, so that `1e3`, ` 1` and `0x1` are refused. */
export function parseCount(text: string, name: string, max = Number.MAX_SAFE_INTEGER): number {
  const value = /^\d{1,16}$/.test(text) ? Number(text) : Number.NaN;
  if (!(value <= max)) {
    const shown = text.slice(0, SHOWN_CHARS_MAX);
    throw badRequest(`Cannot use ${name}=${shown}: not an integer from 0 to ${max}`);
  }
  return value;
}

export function parseFlag(query: URLSearchParams, name: string): boolean {
  const text = parameter(query, name);
  if (text === null || text === "0" || text === "false") return false;
  if (text === "" || text === "1" || text === "true") return true;
  throw badRequest(`Cannot use ${name}=${text.slice(0, SHOWN_CHARS_MAX)}: not 1 or 0`);
}
