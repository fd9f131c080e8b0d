/**
 * One row of the table of native routes: what it is called, what it takes, what it answers, and who does it.
 * The same row registers the route, checks its requests, and describes it in `/openapi.json`.
 */
import type { Context, Hono } from "hono";
import * as v from "valibot";
import { parseCount } from "../query.ts";
import type { BodyRooms } from "../read_body.ts";
import { PARTITION_MAX } from "./fields.ts";
import { readJson } from "./read_json.ts";
import { type QuerySchema, readQuery } from "./read_query.ts";

export type Method = "GET" | "POST" | "PUT" | "PATCH" | "DELETE";
/** Chapters of the document. */
export type Tag =
  | "produce"
  | "read"
  | "groups"
  | "push"
  | "topics"
  | "cluster"
  | "sockets"
  | "system";

/** By media type; null is a body of any bytes. */
export type Content = Readonly<Record<string, v.GenericSchema | null>>;

export interface Answer {
  readonly description: string;
  readonly content?: Content;
  /** What its headers say, by name. */
  readonly headers?: Readonly<Record<string, string>>;
}

/** What is told about a route, beside what its schemas say. */
export interface RouteFacts {
  /** A verb and its object; unique. */
  readonly id: string;
  readonly tag: Tag;
  readonly summary: string;
  readonly description?: string;
  /** What headers of the request mean, by name. */
  readonly headers?: Readonly<Record<string, v.GenericSchema>>;
  /** A body that the route reads by itself. */
  readonly content?: Content;
  readonly answers: Readonly<Record<number, Answer>>;
  /** Statuses of problems beside 400, 403 and 503, which every route may answer. */
  readonly problems?: readonly number[];
}

export interface RouteDescription extends RouteFacts {
  readonly method: Method;
  /** Names of its variable parts stand in braces. */
  readonly path: string;
  readonly query: QuerySchema | null;
  readonly json: v.GenericSchema | null;
}

/** What it takes to read the bodies of requests. */
export interface RouteBase {
  readonly rooms: BodyRooms;
}

export interface Route<S> extends RouteDescription {
  readonly register: (app: Hono, services: S) => void;
}

/** The variable parts that paths have, wherever they occur. */
export interface PathValues {
  readonly topic: string;
  readonly partition: number;
  readonly offset: number;
  readonly group: string;
  readonly subscription: string;
}

type NamesIn<P extends string> = P extends `${string}{${infer N}}${infer Rest}` ? N | NamesIn<Rest>
  : never;
export type PathOf<P extends string> = Pick<PathValues, NamesIn<P> & keyof PathValues>;

const NUMBERS: ReadonlyMap<string, number> = new Map([
  ["partition", PARTITION_MAX],
  ["offset", Number.MAX_SAFE_INTEGER],
]);

/** Throws ProblemError for numbers that are none. */
function pathOf(texts: Readonly<Record<string, string>>): Record<string, string | number> {
  const values: Record<string, string | number> = {};
  for (const [name, text] of Object.entries(texts)) {
    const max = NUMBERS.get(name);
    values[name] = max === undefined ? text : parseCount(text, name, max);
  }
  return values;
}

export interface Input<P extends string, Q, J> {
  readonly request: Request;
  readonly path: PathOf<P>;
  readonly query: Q;
  /** The body, where the route has a schema for it. */
  readonly json: J;
  readonly context: Context;
}

type Handler<P extends string, Q, J> = (
  input: Input<P, Q, J>,
) => Response | Promise<Response>;

export interface RouteSpec<
  S,
  P extends string,
  Q extends QuerySchema | "ignored" | null,
  J extends v.GenericSchema | null,
> extends RouteFacts {
  /** Null takes no parameters: each one is refused, or, when `ignored`, passed over. */
  readonly query: Q;
  /** A small JSON body, which the registration reads. */
  readonly json?: S extends RouteBase ? J : never;
  /** Called once for an app: what it makes lives as long. */
  readonly handler: (services: S) => Handler<P, QueryOutput<Q>, BodyOutput<J>>;
}

type QueryOutput<Q> = Q extends QuerySchema ? v.InferOutput<Q> : null;
type BodyOutput<J> = J extends v.GenericSchema ? v.InferOutput<J> : null;

const NO_QUERY = v.strictObject({});

export function honoPath(path: string): string {
  return path.replaceAll(/\{(\w+)\}/g, ":$1");
}

/** A row of the table. */
export function route<
  S,
  const P extends string,
  Q extends QuerySchema | "ignored" | null,
  J extends v.GenericSchema | null = null,
>(method: Method, path: P, spec: RouteSpec<S, P, Q, J>): Route<S> {
  const { query: querySchema, json: bodySchema, handler, ...facts } = spec;
  const json: v.GenericSchema | null = bodySchema ?? null;
  const query: QuerySchema | null = querySchema === "ignored" ? null : querySchema;
  const checked = querySchema === "ignored" ? null : query ?? NO_QUERY;
  const register = (app: Hono, services: S): void => {
    const handle = handler(services);
    app.on(method, honoPath(path), async (context) => {
      const request = context.req.raw;
      // They are what the types say: both come from the same row.
      const place = pathOf(context.req.param()) as PathOf<P>;
      const asked = (checked === null ? null : readQuery(request, checked)) as QueryOutput<Q>;
      const body = json === null
        ? null
        : await readJson(request, (services as S & RouteBase).rooms, json);
      return await handle({
        request,
        path: place,
        query: asked,
        json: body as BodyOutput<J>,
        context,
      });
    });
  };
  return { ...facts, method, path, query, json, register };
}
