/** The gateway's small texts, in the metadata's own. */
import { isFault } from "../lib/errors.ts";
import type { BrokerServices } from "../broker/handler.ts";
import { changeKv } from "../broker/metadata_kv.ts";
import { faultToCode } from "../broker/fault_to_code.ts";
import { ProblemError, problemOf } from "../http/problem.ts";
import type { MetadataTexts } from "../http/texts.ts";

export class HttpTexts implements MetadataTexts {
  readonly #metadata: BrokerServices["metadata"];

  constructor({ metadata }: Pick<BrokerServices, "metadata">) {
    this.#metadata = metadata;
  }

  get(key: string): string | null {
    return this.#metadata.view().kv.get(key)?.value ?? null;
  }

  keys(prefix: string): readonly string[] {
    return Array.from(this.#metadata.view().kv.entries(), ([key]) => key)
      .filter((key) => key.startsWith(prefix));
  }

  async change(key: string, change: (text: string | null) => string | null): Promise<void> {
    try {
      const refused = await changeKv(this.#metadata, key, change);
      if (refused !== null) throw new ProblemError(problemOf(refused));
    } catch (error) {
      if (!isFault(error)) throw error;
      const message = "The metadata log cannot be written now";
      throw new ProblemError(
        problemOf({ ok: false, error: faultToCode(error, "admin"), message }),
      );
    }
  }

  onChange(listener: () => void): () => void {
    return this.#metadata.onChange(listener);
  }
}
