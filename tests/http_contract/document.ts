/** The document of a running broker, with what a fuzzer cannot use taken out. */

type Json = Record<string, unknown>;

interface Operation {
  readonly operationId: string;
  readonly tags: readonly string[];
  readonly parameters?: { readonly name: string; readonly schema: Json }[];
}

interface Document extends Json {
  readonly paths: Record<string, Record<string, Operation>>;
}

/** Answers without end, and those that are no answers. */
const ENDLESS: ReadonlySet<string> = new Set(["streamTopic", "streamRecords", "streamToPartition"]);
const ENDLESS_TAGS: ReadonlySet<string> = new Set(["sockets"]);
/** A wait is right at any length, and a fuzzer has better things to do. */
const WAITS: ReadonlySet<string> = new Set(["wait", "max_wait_ms"]);
const WAIT_MS_MAX = 5;

function shortened(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(shortened);
  if (typeof value !== "object" || value === null) return value;
  return Object.fromEntries(
    Object.entries(value).map(([name, inner]) => {
      const isWait = WAITS.has(name) && typeof inner === "object" && inner !== null;
      return [name, isWait ? { ...inner, maximum: WAIT_MS_MAX } : shortened(inner)];
    }),
  );
}

export async function readDocument(url: string): Promise<Document> {
  const answer = await fetch(`${url}/openapi.json`);
  if (!answer.ok) throw new Error(`/openapi.json answers ${answer.status}`);
  return await answer.json() as Document;
}

/** `topics` are the names that the fuzzer tries: guesses would only find 404. */
export function forFuzzer(document: Document, topics: readonly string[]): Document {
  const paths: Document["paths"] = {};
  for (const [path, methods] of Object.entries(document.paths)) {
    const kept = Object.entries(methods).filter(([, { operationId, tags }]) =>
      !ENDLESS.has(operationId) && !tags.some((tag) => ENDLESS_TAGS.has(tag))
    ).map(([method, operation]) => {
      const parameters = operation.parameters?.map((one) => {
        if (one.name === "topic") return { ...one, schema: { ...one.schema, enum: topics } };
        return WAITS.has(one.name)
          ? { ...one, schema: { ...one.schema, maximum: WAIT_MS_MAX } }
          : one;
      });
      return [method, { ...operation, ...(parameters === undefined ? {} : { parameters }) }];
    });
    if (kept.length > 0) paths[path] = Object.fromEntries(kept) as Record<string, Operation>;
  }
  return shortened({ ...document, paths }) as Document;
}
