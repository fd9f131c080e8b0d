/** The table of routes as an OpenAPI 3.1 document. */
import * as v from "valibot";
import { problem } from "./answers.ts";
import { subscriptionId } from "../push/subscription.ts";
import { offset, partition, topicName } from "./fields.ts";
import { type Components, isOptional, type JsonSchema, jsonSchemaOf } from "./json_schema.ts";
import { innermost, isCommaList } from "./read_query.ts";
import type { Answer, Content, RouteDescription, Tag } from "./route.ts";

const TAGS: Readonly<Record<Tag, string>> = {
  produce: "Records in",
  read: "Records out",
  groups: "Readers that share a topic and remember where they are",
  push: "Records delivered to handlers",
  topics: "Topics, their settings and partitions",
  cluster: "Nodes, quotas and costs",
  sockets: "Over WebSockets",
  system: "Health, metrics and this document",
};

/** Variable parts of paths. */
const PATH_FIELDS: Readonly<Record<string, v.GenericSchema>> = {
  topic: topicName,
  partition,
  offset,
  subscription: subscriptionId,
};
const ANY_NAME = v.pipe(v.string(), v.minLength(1));

/** Every route has them: they come from before it is reached, or from the store. */
const COMMON_PROBLEMS: readonly number[] = [400, 403, 500, 503];

const PROBLEM_WORDS: Readonly<Record<number, string>> = {
  400: "the request is not understood",
  401: "not signed as it must be",
  403: "not allowed",
  404: "there is no such thing",
  408: "the body does not arrive",
  409: "it is there already, or another request is at it",
  410: "the topic is another one of the same name",
  412: "the log does not end there",
  413: "too large",
  415: "an unknown type or encoding of the body",
  416: "outside of the log",
  426: "it takes a WebSocket",
  422: "a record is refused, or cannot be shown",
  429: "too many requests",
  501: "not where the broker is embedded without a socket",
  500: "what is stored is damaged, or a bug",
  503: "not now: see Retry-After",
  504: "the outcome is not known in time",
};

const WITH_RETRY_AFTER: ReadonlySet<number> = new Set([429, 503, 504]);

class DocumentWriter {
  readonly schemas: Components = new Map();
  readonly responses: Components = new Map();

  #schema(schema: v.GenericSchema): JsonSchema {
    return jsonSchemaOf(schema, this.schemas);
  }

  /** What a description is, whatever stands around it; components keep their own. */
  #parameter(where: "path" | "query" | "header", name: string, field: v.GenericSchema): JsonSchema {
    const { description, ...schema } = this.#schema(field);
    return {
      name,
      in: where,
      required: where === "path" || !isOptional(field),
      ...(description === undefined ? {} : { description }),
      schema,
      ...(isCommaList(field) ? { style: "form", explode: false } : {}),
      ...(innermost(field).type === "boolean" ? { allowEmptyValue: true } : {}),
    };
  }

  #parameters({ path, query, headers = {} }: RouteDescription): readonly JsonSchema[] {
    const names = [...path.matchAll(/\{(\w+)\}/g)].map(([, name]) => name!);
    return [
      ...names.map((name) => this.#parameter("path", name, PATH_FIELDS[name] ?? ANY_NAME)),
      ...Object.entries(query?.entries ?? {})
        .map(([name, field]) => this.#parameter("query", name, field as v.GenericSchema)),
      ...Object.entries(headers).map(([name, field]) => this.#parameter("header", name, field)),
    ];
  }

  #content(content: Content): JsonSchema {
    return Object.fromEntries(
      Object.entries(content).map(([type, schema]) => [
        type,
        schema === null ? {} : { schema: this.#schema(schema) },
      ]),
    );
  }

  #answer({ description, content, headers }: Answer): JsonSchema {
    return {
      description,
      ...(content === undefined ? {} : { content: this.#content(content) }),
      ...(headers === undefined ? {} : {
        headers: Object.fromEntries(
          Object.entries(headers).map(([name, words]) => [
            name,
            { description: words, schema: { type: "string" } },
          ]),
        ),
      }),
    };
  }

  /** Written once for all routes. */
  #problem(status: number): JsonSchema {
    const name = `Problem${status}`;
    if (!this.responses.has(name)) {
      const answer = this.#answer({
        description: PROBLEM_WORDS[status] ?? "refused",
        content: { "application/problem+json": problem },
        ...(WITH_RETRY_AFTER.has(status) ? { headers: { "Retry-After": "seconds to wait" } } : {}),
      });
      this.responses.set(name, answer);
    }
    return { $ref: `#/components/responses/${name}` };
  }

  /** The host's own answer, before any of ours. */
  #tooLong(): JsonSchema {
    const name = "TooLong";
    this.responses.set(name, { description: "the first line and the headers are above 16 KiB" });
    return { $ref: `#/components/responses/${name}` };
  }

  #answers({ answers, problems = [] }: RouteDescription): JsonSchema {
    const all = [...new Set([...COMMON_PROBLEMS, ...problems])];
    const refused = all.map((status): readonly [string, JsonSchema] => [
      String(status),
      this.#problem(status),
    ]);
    const given = Object.entries(answers)
      .map(([status, answer]): readonly [string, JsonSchema] => [status, this.#answer(answer)]);
    return Object.fromEntries([...given, ...refused, ["431", this.#tooLong()]]);
  }

  operation(described: RouteDescription): JsonSchema {
    const { id, tag, summary, description, json, content } = described;
    const body = json === null ? content : { "application/json": json };
    const parameters = this.#parameters(described);
    return {
      operationId: id,
      tags: [tag],
      summary,
      ...(description === undefined ? {} : { description }),
      ...(parameters.length === 0 ? {} : { parameters }),
      ...(body === undefined ? {} : {
        requestBody: { required: true, content: this.#content(body) },
      }),
      responses: this.#answers(described),
    };
  }
}

/** Routes of one path stand together. */
export function documentOf(routes: readonly RouteDescription[], version: string): JsonSchema {
  const writer = new DocumentWriter();
  const paths: Record<string, Record<string, JsonSchema>> = {};
  for (const one of routes) {
    (paths[one.path] ??= {})[one.method.toLowerCase()] = writer.operation(one);
  }
  const used = new Set(routes.map(({ tag }) => tag));
  return {
    openapi: "3.1.0",
    info: {
      title: "Skerry HTTP gateway",
      version,
      description: "Records over HTTP, at the same offsets that Kafka clients see.",
      license: { name: "Apache-2.0", identifier: "Apache-2.0" },
    },
    servers: [{ url: "/" }],
    security: [],
    tags: Object.entries(TAGS).filter(([name]) => used.has(name as Tag))
      .map(([name, description]) => ({ name, description })),
    paths,
    components: {
      schemas: Object.fromEntries(writer.schemas),
      responses: Object.fromEntries(writer.responses),
    },
  };
}
