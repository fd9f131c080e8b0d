/** What HTTP clients' consumer instances leave in the metadata: few texts, written only when they change. */
import { nodeId as brandNodeId } from "../lib/brand.ts";
import { isFault } from "../lib/errors.ts";
import type { BrokerServices } from "../broker/handler.ts";
import { changeKv } from "../broker/metadata_kv.ts";
import type { InstanceStore } from "../http/mounts/group_port.ts";
import { ProblemError, problemOf } from "../http/problem.ts";

const PREFIX = "http-instance/";

export class HttpInstances implements InstanceStore {
  readonly nodeId: number;
  readonly #services: BrokerServices;

  constructor(services: BrokerServices) {
    this.#services = services;
    this.nodeId = services.nodeId;
  }

  get(key: string): string | null {
    return this.#services.metadata.view().kv.get(`${PREFIX}${key}`)?.value ?? null;
  }

  keys(): readonly string[] {
    return Array.from(this.#services.metadata.view().kv.entries(), ([key]) => key)
      .filter((key) => key.startsWith(PREFIX))
      .map((key) => key.slice(PREFIX.length));
  }

  async add(key: string, value: string): Promise<boolean> {
    let isThere = false;
    await this.#change(key, (before) => {
      isThere = before !== null;
      return before ?? value;
    });
    return !isThere;
  }

  async put(key: string, value: string | null): Promise<void> {
    await this.#change(key, () => value);
  }

  async #change(key: string, change: (before: string | null) => string | null): Promise<void> {
    try {
      const refused = await changeKv(this.#services.metadata, `${PREFIX}${key}`, change);
      if (refused !== null) throw new ProblemError(problemOf(refused));
    } catch (error) {
      if (!isFault(error)) throw error;
      const failure = { ok: false, error: "KAFKA_STORAGE_ERROR", message: error.message } as const;
      throw new ProblemError(problemOf(failure));
    }
  }

  isAlive(nodeId: number): boolean {
    return this.#services.metadata.view().nodes.get(brandNodeId(nodeId))?.state === "live";
  }
}
