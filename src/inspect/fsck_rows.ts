/** Whether the rows of the metadata agree with each other: every reference leads to a row, every row has one. */
import type { ObjectRow } from "../controller/image.ts";
import { rangeProblem } from "../controller/invariants.ts";
import type { State } from "../controller/state.ts";
import type { ObjectId } from "../lib/brand.ts";
import { dataKey } from "../object/object_key.ts";
import { decodeAttributes } from "../storage/format/attributes.ts";
import { damageOf } from "./blocks.ts";
import { damage, type Report } from "./finding.ts";

/** Objects that a list, a stream or a live composite refers to; each once. */
class References {
  readonly #state: State;
  readonly #clusterId: string;
  readonly #report: Report;
  readonly #seen = new Set<ObjectId>();

  constructor(state: State, clusterId: string, report: Report) {
    this.#state = state;
    this.#clusterId = clusterId;
    this.#report = report;
  }

  async wrong(id: ObjectId, detail: string): Promise<void> {
    await this.#report(damage("metadata", dataKey(this.#clusterId, id), detail));
  }

  async add(id: ObjectId, by: string, fits: (row: ObjectRow) => boolean): Promise<void> {
    const row = this.#state.objects.get(id);
    if (row === undefined || row.state !== "committed") {
      return await this.wrong(
        id,
        `${by} refers to object ${id}, which is ${row?.state ?? "unknown"}`,
      );
    }
    if (!fits(row)) {
      return await this.wrong(id, `${by} refers to object ${id}, which is not its own`);
    }
    if (this.#seen.has(id)) {
      return await this.wrong(id, `${by} refers to object ${id}, as does another`);
    }
    this.#seen.add(id);
  }

  has(id: ObjectId): boolean {
    return this.#seen.has(id);
  }
}

function attributesProblem({ attributes, kind }: ObjectRow): string | null {
  try {
    const { type } = decodeAttributes(attributes);
    return (type === "composite") === (kind === "composite")
      ? null
      : `a ${kind} object with the attributes of a ${type} one`;
  } catch (error) {
    return damageOf(error);
  }
}

export async function checkRows(state: State, clusterId: string, report: Report): Promise<void> {
  const references = new References(state, clusterId, report);
  for (const [node, ids] of state.streamSets) {
    for (const id of ids) {
      await references.add(
        id,
        `node ${node}`,
        (row) => row.kind === "stream-set" && row.nodeId === node,
      );
    }
  }
  for (const { streamId, objects } of state.streams.values()) {
    for (const id of objects) {
      await references.add(id, `stream ${streamId}`, (row) => row.stream?.streamId === streamId);
    }
  }
  for (const { objectId: own, links, state: stage } of state.objects.values()) {
    if (stage !== "committed") continue;
    for (const id of links) {
      await references.add(
        id,
        `composite ${own}`,
        (row) => row.kind === "stream" && row.linkedBy === own,
      );
    }
  }
  for (const row of state.objects.values()) {
    if (row.state !== "committed") continue;
    if (!references.has(row.objectId)) {
      await references.wrong(
        row.objectId,
        `nothing refers to the committed object ${row.objectId}`,
      );
    }
    const problem = attributesProblem(row);
    if (problem !== null) await references.wrong(row.objectId, problem);
  }
  for (const row of state.streams.values()) {
    const problem = rangeProblem(row);
    if (problem !== null) await report(damage("metadata", `stream ${row.streamId}`, problem));
  }
}
